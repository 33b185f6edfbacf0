"""Record stream -> batches: the end of the data's way, and where its position is saved.

Every value is copied once, straight to where it stays. F sparse features, B rows, V ids of all rows of all features,
D numbers per row of all dense features.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torchrec.sparse.jagged_tensor import JaggedTensor, KeyedJaggedTensor, KeyedTensor

from penstock.data.parallel_map import ParallelMap
from penstock.features.fast_path import PlainColumns
from penstock.features.parser import NO_ROW_ID, ParsedBatch, Parser
from penstock.features.values import DenseColumn, NumberArray, SparseColumn, one_per_row, sum_by_row
from penstock.readers.stream import Quarantine, RecordStream
from penstock.runtime.budget import Share
from penstock.runtime.world import State
from penstock.tensors.batch import BASE, Batch, Position, RecordBatchTensor


class BatchLoader:
    """Parses and packs the record batches of a stream; with `num_workers`, processes do the parsing.

    With `pin_memory`, batches lie in page-locked memory where there is an accelerator to copy them to.
    With a `quarantine`, rows with bad values go there, and the others on; without one, such a row is an error.

    Like the stream it is its own cursor: iterating goes on from its position, which is the stream's after the last
    batch given out, so that it means the same for any number of workers.
    """

    def __init__(
        self,
        stream: RecordStream,
        parser: Parser,
        *,
        reserved_columns: Sequence[str] = (),
        num_workers: int = 0,
        worker_share: Share | None = None,
        quarantine: Quarantine | None = None,
        pin_memory: bool = False,
    ) -> None:
        self.stream = stream
        self.parser = parser
        self._quarantine = quarantine
        self._pin_memory = pin_memory and torch.cuda.is_available()
        self.reserved_columns = list(reserved_columns)
        self._parse = parser.parse if quarantine is None else parser.parse_usable
        self.parsing_seconds = self.reading_seconds = 0.0
        """Of all batches; the latter with packing. Without workers only: what they take is not known here."""
        self._workers: ParallelMap[ParsedBatch] | None = None
        if num_workers:
            assert worker_share is not None
            self._workers = ParallelMap(stream, self._parse, num_workers, worker_share, parser.file_paths)

    def __iter__(self) -> Iterator[Batch]:
        """Batches from the present position on; one of which no row could be used is not given."""
        source: Iterable[Any] = self._workers or self.stream
        ended_at = time.perf_counter()
        for item in source:
            read_at = time.perf_counter()
            parsed, record_batch = item if self._workers else (self._parse(item), item)
            parsed_at = time.perf_counter()
            if self._quarantine is not None:
                for row in parsed.rejected:
                    self._quarantine.put(
                        row.row_id, row.problem, column=row.column, value=row.value, row=row.content
                    )
            reserves = record_batch.select(self.reserved_columns) if self.reserved_columns else None
            if reserves is not None and parsed.kept is not None:
                reserves = reserves.filter(pa.array(parsed.kept))
            # Copies all, so that the record batch can go.
            batch = pack(parsed, reserves, self.parser.file_paths)
            del item, parsed, record_batch, reserves
            if self._pin_memory:
                batch = batch.pin_memory()
            if not self._workers:
                self.parsing_seconds += parsed_at - read_at
                self.reading_seconds += read_at - ended_at + time.perf_counter() - parsed_at
            if batch.num_rows:
                batch.resume_state = self.state_dict()
                yield batch
            del batch
            ended_at = time.perf_counter()

    def state_dict(self) -> State:
        return (self._workers or self.stream).state_dict()

    def load_state_dict(self, state: State) -> None:
        (self._workers or self.stream).load_state_dict(state)

    def set_epoch(self, epoch: int) -> None:
        (self._workers or self.stream).set_epoch(epoch)

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()
        self.stream.close()


def pack(
    parsed: ParsedBatch, reserves: pa.RecordBatch | None = None, file_paths: tuple[str, ...] = ()
) -> Batch:
    """The batch of one group of rows.

    `reserves` are columns that are only carried along, `file_paths` the files that row ids count.
    """
    num_rows = parsed.num_rows
    sparse = {name: column for name, column in parsed.features.items() if isinstance(column, SparseColumn)}
    dense = {name: column for name, column in parsed.features.items() if isinstance(column, DenseColumn)}
    numbers = pack_numbers(
        {name: each for name, each in dense.items() if each.steps is None}, parsed.plain, num_rows
    )
    unweighted = {name: column for name, column in sparse.items() if column.weights is None}
    ids = pack_ids(unweighted, parsed.plain, num_rows)
    weighted = pack_ids(
        {name: each for name, each in sparse.items() if each.weights is not None}, None, num_rows
    )
    # Of sequences whose steps do not all hold one id.
    several = {
        name: SparseColumn(column.lengths.astype(np.int64), column.steps)
        for name, column in sparse.items()
        if column.steps is not None and column.lengths is not one_per_row(len(column.values))
    }
    several = {name: column for name, column in several.items() if not (column.values == 1).all()}
    step_counts = pack_ids(several, None, num_rows)
    origin_known = not len(parsed.row_ids) or parsed.row_ids[0] != NO_ROW_ID
    # Labels, weights and the rest become tensors of their own: views would keep the whole row group in memory.
    return Batch(
        dense_features={} if numbers is None else {BASE: numbers},
        sparse_features={} if ids is None else {BASE: ids},
        weighted_sparse_features={} if weighted is None else {BASE: weighted},
        sequence_mulval_lengths={} if step_counts is None else {BASE: step_counts},
        sequence_dense_features={
            name: JaggedTensor(torch.tensor(column.values), lengths=torch.tensor(column.steps))
            for name, column in dense.items()
            if column.steps is not None
        },
        labels={name: torch.tensor(values) for name, values in parsed.labels.items()},
        jagged_labels={
            name: JaggedTensor(torch.tensor(values), lengths=torch.tensor(lengths))
            for name, (values, lengths) in parsed.jagged_labels.items()
        },
        sample_weights={name: torch.tensor(values) for name, values in parsed.sample_weights.items()},
        additional_infos={name: torch.tensor(values) for name, values in parsed.side.items()},
        reserves=RecordBatchTensor(reserves),
        value_counts=parsed.counts or None,
        position=Position.of(parsed.row_ids, file_paths) if origin_known else None,
    )


def pack_numbers(
    columns: Mapping[str, DenseColumn], plain: PlainColumns | None, num_rows: int
) -> KeyedTensor | None:
    """Dense columns side by side in one (B, D) tensor, the plain ones first: they stand there already."""
    names = [*(() if plain is None else plain.number_names), *columns]
    if not names:
        return None
    widths = [1] * (len(names) - len(columns)) + [column.values.shape[1] for column in columns.values()]
    if plain is None:
        values_BD = torch.empty((num_rows, sum(widths)), dtype=torch.float32)
        np.concatenate([column.values for column in columns.values()], axis=1, out=values_BD.numpy())
    else:
        numbers = _owned(plain.numbers)
        start = len(plain.number_names)
        for column in columns.values():
            numbers[:, start : start + column.values.shape[1]] = column.values
            start += column.values.shape[1]
        values_BD = torch.from_numpy(numbers)
    return KeyedTensor(names, widths, values_BD)


def pack_ids(
    columns: Mapping[str, SparseColumn], plain: PlainColumns | None, num_rows: int
) -> KeyedJaggedTensor | None:
    """Sparse columns one after the other, the plain ones first: they stand there already.

    Lengths are int32, torchrec's own default; the step is as fast with int64. The counts per feature are known here,
    so torchrec need not sum lengths to find them. A sequence has the ids of all its steps in one row.
    """
    plain_names = () if plain is None else plain.id_names
    names = [*plain_names, *columns]
    if not names:
        return None
    counts = [num_rows] * len(plain_names) + [len(column.values) for column in columns.values()]
    ends = np.cumsum(counts, dtype=np.int64).tolist()
    values = np.empty(ends[-1], np.int64) if plain is None else _owned(plain.ids)
    is_weighted = any(column.weights is not None for column in columns.values())
    weights = np.empty(ends[-1], np.float32) if is_weighted else None
    for column, count, end in zip(
        columns.values(), counts[len(plain_names) :], ends[len(plain_names) :], strict=True
    ):
        values[end - count : end] = column.values
        if weights is not None:
            weights[end - count : end] = column.weights
    # One id in every row of every feature is everyday: such batches share one tensor, which nobody may change.
    if all(column.lengths is one_per_row(num_rows) and column.steps is None for column in columns.values()):
        lengths_FB = _ones(len(names) * num_rows)
    else:
        lengths_FB = torch.empty(len(names) * num_rows, dtype=torch.int32)
        by_row = [
            column.lengths if column.steps is None else sum_by_row(column.lengths, column.steps)
            for column in columns.values()
        ]
        np.concatenate([np.ones(len(plain_names) * num_rows, np.int32), *by_row], out=lengths_FB.numpy())
    return KeyedJaggedTensor(
        keys=names,
        values=torch.from_numpy(values),
        lengths=lengths_FB,
        weights=None if weights is None else torch.from_numpy(weights),
        stride=num_rows,
        length_per_key=counts,
        offset_per_key=[0, *ends],
    )


@lru_cache(maxsize=4)
def _ones(size: int) -> torch.Tensor:
    return torch.ones(size, dtype=torch.int32)


def _owned(values: NumberArray) -> NumberArray:
    """The array itself where it is memory of its own, else a copy."""
    return values if values.flags.owndata else np.array(values)
