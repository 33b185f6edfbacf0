"""Record stream -> batches: the end of the data's way, and where its position is saved.

Every value is copied once, straight to where it stays. F sparse features, B rows, V ids of all rows of all features,
D numbers per row of all dense features.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor, KeyedTensor

from penstock.data.parallel_map import ParallelMap
from penstock.features.fast_path import PlainColumns
from penstock.features.feature import DenseColumn, NumberArray, SparseColumn, one_per_row
from penstock.features.parser import NO_ROW_ID, ParsedBatch, Parser
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


Packed = tuple[KeyedTensor | None, KeyedJaggedTensor | None]
"""The numbers and the ids of a batch, where it has any."""


def pack(
    parsed: ParsedBatch, reserves: pa.RecordBatch | None = None, file_paths: tuple[str, ...] = ()
) -> Batch:
    """The batch of one group of rows.

    `reserves` are columns that are only carried along, `file_paths` the files that row ids count.
    """
    # Labels, weights and the rest become tensors of their own: views would keep the whole row group in memory.
    dense, sparse = pack_columns(parsed) if parsed.plain is None else pack_plain(parsed.plain)
    origin_known = not len(parsed.row_ids) or parsed.row_ids[0] != NO_ROW_ID
    return Batch(
        dense_features={} if dense is None else {BASE: dense},
        sparse_features={} if sparse is None else {BASE: sparse},
        labels={name: torch.tensor(values) for name, values in parsed.labels.items()},
        sample_weights={name: torch.tensor(values) for name, values in parsed.sample_weights.items()},
        additional_infos={name: torch.tensor(values) for name, values in parsed.side.items()},
        reserves=RecordBatchTensor(reserves),
        position=Position.of(parsed.row_ids, file_paths) if origin_known else None,
    )


def pack_plain(plain: PlainColumns) -> Packed:
    """The features of a batch that stand where they stay already; copied only out of shared memory."""
    dense = sparse = None
    if plain.number_names:
        numbers_BD = torch.from_numpy(_owned(plain.numbers_BD))
        dense = KeyedTensor(list(plain.number_names), [1] * len(plain.number_names), numbers_BD)
    if plain.id_names:
        num_features, num_rows = plain.ids_FB.shape
        sparse = KeyedJaggedTensor(
            keys=list(plain.id_names),
            values=torch.from_numpy(_owned(plain.ids_FB).reshape(-1)),
            lengths=_ones(num_features * num_rows),
            stride=num_rows,
            length_per_key=[num_rows] * num_features,
            offset_per_key=[num_rows * index for index in range(num_features + 1)],
        )
    return dense, sparse


def pack_columns(parsed: ParsedBatch) -> Packed:
    """Dense columns side by side in one (B, D) tensor, sparse ones one after the other.

    If any sparse column has weights the others weigh 1. Lengths are int32, torchrec's own default; the step is as fast
    with int64. The counts per feature are known here, so torchrec need not sum lengths to find them.
    """
    num_rows, numbers = parsed.num_rows, None
    dense = {name: column for name, column in parsed.features.items() if isinstance(column, DenseColumn)}
    if dense:
        widths = [column.values.shape[1] for column in dense.values()]
        values_BD = torch.empty((num_rows, sum(widths)), dtype=torch.float32)
        np.concatenate([column.values for column in dense.values()], axis=1, out=values_BD.numpy())
        numbers = KeyedTensor(list(dense), widths, values_BD)
    sparse = {name: column for name, column in parsed.features.items() if isinstance(column, SparseColumn)}
    if not sparse:
        return numbers, None
    counts = [len(column.values) for column in sparse.values()]
    ends = np.cumsum(counts, dtype=np.int64).tolist()
    # One id in every row of every feature is everyday: such batches share one tensor, which nobody may change.
    if all(column.lengths is one_per_row(num_rows) for column in sparse.values()):
        lengths_FB = _ones(len(sparse) * num_rows)
    else:
        lengths_FB = torch.empty(len(sparse) * num_rows, dtype=torch.int32)
        np.concatenate([column.lengths for column in sparse.values()], out=lengths_FB.numpy())
    values_V = torch.empty(ends[-1], dtype=torch.int64)
    weighted = any(column.weights is not None for column in sparse.values())
    weights_V = torch.ones(ends[-1], dtype=torch.float32) if weighted else None
    values = values_V.numpy()
    for column, count, end in zip(sparse.values(), counts, ends, strict=True):
        values[end - count : end] = column.values
        if weights_V is not None and column.weights is not None:
            weights_V.numpy()[end - count : end] = column.weights
    return numbers, KeyedJaggedTensor(
        keys=list(sparse),
        values=values_V,
        lengths=lengths_FB,
        weights=weights_V,
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
