"""Cut a stream into batches whose rows cost no more than a limit together."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.batching.costs import CostOf
from penstock.batching.cutting import Cutter
from penstock.batching.open_batch import OpenBatch, Portion
from penstock.batching.pricing import CostRules, Pricing
from penstock.batching.sections import Oversize
from penstock.batching.stage import Stage
from penstock.batching.waiting import join
from penstock.readers.stream import RecordStream
from penstock.runtime.budget import Share

_logger = logging.getLogger(__name__)


def cut_by_cost(
    source: RecordStream,
    cost: CostOf,
    limit: float,
    *,
    max_batch_rows: int | None = None,
    oversize: Oversize = Oversize.alone,
    null_cost: float | None = None,
    drop_remainder: bool = False,
    file_paths: Sequence[str] = (),
    share: Share | None = None,
) -> "CostCut":
    """Batches of as many consecutive rows as cost no more than `limit` together, however the source gives them.

    A batch ends before the first row that does not fit, and never skips one to fit a later one. The rows of an open
    batch are views of the source's; those that wait for the next chunk are leased from the share, so that rows
    that cost nothing cannot fill the memory. `file_paths` are for messages.
    """
    rules = CostRules(limit, max_batch_rows, Oversize(oversize), null_cost, drop_remainder)
    return CostCut(source, cost, rules, file_paths, share)


@dataclass(frozen=True, slots=True)
class CutCount:
    """What cutting a stream gives."""

    num_batches: int = 0
    num_rows: int = 0
    """Rows of all batches."""
    most_rows: int = 0
    """Rows of the batch that has most."""
    num_oversize: int = 0
    """Rows that alone cost more than the limit; they are in the batches unless such rows are dropped."""


class CostCut(Stage):
    """The stream that `cut_by_cost` gives; a place may go on with another limit."""

    def __init__(
        self,
        source: RecordStream,
        cost: CostOf,
        rules: CostRules,
        file_paths: Sequence[str] = (),
        share: Share | None = None,
    ) -> None:
        cost.check(source.schema)
        super().__init__(source)
        self._cost = cost
        self._rules = rules
        self._file_paths = file_paths
        self._share = share
        self._pricing = Pricing(cost, rules, file_paths)
        self._open = OpenBatch(0, share)
        self.num_oversize = 0
        """Rows that alone cost more than the limit, of those that this stream has consumed."""

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches from the present place on."""
        before = self.num_oversize
        for portion in self._portions(self._pricing):
            self._place = self._place.at(portion.end_row)
            self.num_oversize += portion.num_oversize
            if portion.pieces:
                yield join(portion.pieces, "data_config.batch_cost_size")
        if self._rules.oversize is Oversize.drop and self.num_oversize > before:
            _logger.warning(
                "epoch %d: %s rows cost more than %s alone and were left out",
                self._place.epoch,
                f"{self.num_oversize - before:,}",
                f"{self._rules.limit:,}",
            )

    def count(self) -> CutCount:
        """What is left of the epoch, without moving the place: one pass over the source.

        It looks at costs only, so that a source of nothing but `cost.columns` is enough, and cheap.
        """
        counts = CutCount()
        for portion in self._portions(Pricing(self._cost, self._rules, self._file_paths, quiet=True)):
            counts = CutCount(
                counts.num_batches + bool(portion.pieces),
                counts.num_rows + portion.num_rows,
                max(counts.most_rows, portion.num_rows),
                counts.num_oversize + portion.num_oversize,
            )
        return counts

    def _portions(self, pricing: Pricing) -> Iterator[Portion]:
        """The rows of each batch; the last portion may be without rows, since every row of the source is in one."""
        rules = self._rules
        self._source.go_to(self._place)
        arrived_rows = self._place.row
        cutter = Cutter(rules.limit, rules.max_batch_rows)
        # An iteration that was left alone would hold its bytes for ever.
        self._open.release()
        self._open = OpenBatch(arrived_rows, self._share)
        with self._open as batch:
            for chunk in self._source:
                priced = pricing.price(chunk, arrived_rows)
                start = 0
                for end in cutter.ends(priced.costs):
                    batch.add(priced, start, end)
                    yield batch.close()
                    start = end
                batch.add(priced, start, len(priced.costs))
                batch.keep()
                arrived_rows += chunk.num_rows
                del chunk, priced
            yield batch.close_last(arrived_rows, is_wanted=not rules.drop_remainder or cutter.is_full)
