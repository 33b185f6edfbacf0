"""Bounded batches in three lines: a source, what is done with its rows, and a loop over it."""

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.config.errors import ConfigError, DataError, hint
from penstock.data.arguments import (
    flag_argument,
    function_argument,
    is_whole,
    mapping_argument,
    names_argument,
    number_argument,
    own_words,
    require,
    size_argument,
    whole_argument,
)
from penstock.data.arrow_numpy import leaf_type
from penstock.data.chain import ByCost, ByRows, Chain, Shuffling, all_rows, cost_of, describe
from penstock.data.cut import CostRules
from penstock.data.filter import PartOf, Test, passes
from penstock.data.map_rows import MapStep
from penstock.data.passes import Form, Opened, Pass, num_elements, open_pass, position_in, rows_that_hold
from penstock.data.row_cost import ColumnCost
from penstock.data.sections import Oversize
from penstock.data.sources import path_text
from penstock.readers.files import is_uri
from penstock.readers.order import Shard
from penstock.readers.table_write import write_output
from penstock.runtime.world import State

if TYPE_CHECKING:
    from penstock.tensors.dataset import TorchDataset

_ROWS_AT_ONCE = 8192
"""Of record batches for whoever asks for no size."""


class Dataset:
    """Rows of files or arrays, and what is done with them on the way to a loop.

    Every method returns a new Dataset and leaves this one as it is. Iterating gives rows as dicts of values, and after
    `.batch` batches as dicts of NumPy arrays, with features and labels of a row always together. Nothing is read
    before that. Each pass over the data is an epoch with its own order of rows; a loop that was left is begun again,
    unless its position was loaded: `state_dict` and `load_state_dict`.
    """

    def __init__(self, chain: Chain, form: Form = Form.NUMPY) -> None:
        self._chain = chain
        self._form = form
        self._latest: Opened | None = None
        self._is_ready = False
        """Whether the next pass begins at the position of the latest."""
        self._lengths: dict[int, int] = {}
        self._num_rows: int | None = None

    def __repr__(self) -> str:
        return describe(self._chain)

    # --- Which rows and columns --------------------------------------------------------------------------

    @property
    def schema(self) -> pa.Schema:
        """The columns that are read, under the names they are given out with, and their Arrow types."""
        return self._chain.schema()

    @property
    def num_rows(self) -> int:
        """Rows of one epoch, of all shards together; after a filter they are read once to be counted."""
        if self._num_rows is None:
            with own_words():
                self._num_rows = num_elements(all_rows(self._chain), 0)
        return self._num_rows

    def select(self, names: Sequence[str]) -> "Dataset":
        """Read only these columns, in this order. Filters, splits and costs may use the others all the same."""
        names = names_argument("select", names)
        require(names, "select", "is empty; give a list of names")
        advice = "call it before, or return fewer columns from the map"
        require(not self._chain.maps, "select", f"stands after map; {advice}")
        self.check_names(names)
        known = self._chain.names()
        return self._with(columns={name: known[name] for name in names})

    columns = select

    def rename(self, names: Mapping[str, str]) -> "Dataset":
        """Give columns other names: `.rename({"old": "new"})`."""
        renamed = mapping_argument("rename", names, "{'old': 'new'}")
        advice = "call it before, or return other names from the map"
        require(not self._chain.maps, "rename", f"stands after map; {advice}")
        self.check_names(list(renamed))
        known = self._chain.names()
        given = names_argument("rename", [renamed.get(name, name) for name in known])
        return self._with(columns=dict(zip(given, known.values(), strict=True)))

    def fill_nulls(self, values: Mapping[str, Any] | None = None, **more: Any) -> "Dataset":
        """Take these values where columns have none: `.fill_nulls(age=0)`, or a mapping of column to value."""
        fills = {**mapping_argument("fill_nulls", values or {}, "{'age': 0}"), **more}
        advice = "stands after map, which nulls have reached; call it before"
        require(not self._chain.maps, "fill_nulls", advice)
        self.check_names(list(fills))
        schema, known = self.schema, self._chain.names()
        for name, value in fills.items():
            kind: Any = schema.field(name).type
            try:
                if value is None:
                    raise TypeError("None stands for no value")
                pa.scalar(value, leaf_type(kind))
            except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
                advice = self._chain.source.advice_on_text(name) if pa.types.is_string(kind) else ""
                raise ConfigError.at(
                    "fill_nulls", f"{value!r} is no value of column '{name}', which is {kind}{advice}"
                ) from error
        return self._with(fills={**self._chain.fills, **{known[name]: fills[name] for name in fills}})

    def filter(self, condition: Test) -> "Dataset":
        """Only rows that meet a condition: `.filter(pyarrow.compute.field("age") > 30)`.

        Or a function that makes a mask, one bool for each row, of a record batch with the columns of this Dataset. A
        condition that is null is not met. Batches stay full; a shuffle buffer holds rows before they are filtered.
        """
        self._require_rows("filter")
        chain = self._chain
        schema = chain.source.scan().columns
        found = passes(condition, chain.names(), schema, chain.fills, chain.no_column)
        return self._with(conditions=(*chain.conditions, found))

    def split(self, fractions: Sequence[float], by: str | None = None, seed: int = 0) -> "list[Dataset]":
        """Parts of about these fractions of the rows: `train, test = dataset.split([0.9, 0.1], by="user")`.

        Every row is in exactly one part, in every epoch: drawn by a hash of its file and row number, or with `by` of
        the value in this column, so that all rows of a user are in one part, whatever file they stand in.
        """
        self._require_rows("split")
        seed = whole_argument("split", seed, "give a whole number", at_least=None, name="seed")
        given: Any = fractions
        is_list = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping)
        require(is_list, "split", f"is {given!r}; give a list of fractions, such as [0.9, 0.1]")
        sizes = [number_argument("split", "a fraction", fraction) for fraction in given]
        is_whole = all(size > 0 for size in sizes) and math.isclose(math.fsum(sizes), 1, abs_tol=1e-6)
        advice = "they must be more than 0 and add up to 1"
        require(is_whole, "split", f"fractions are {sizes}, together {math.fsum(sizes):g}; {advice}")
        key = None if by is None else self._chain.source_column(by)
        kind: Any = None if key is None else self._chain.source.scan().columns.field(key).type
        require(
            not pa.types.is_nested(kind or pa.null()), "split", f"'{by}' is {kind}; give a number or a string"
        )
        edges = [0.0, *(math.fsum(sizes[: index + 1]) for index in range(len(sizes) - 1)), 1.0]
        parts = [PartOf(start, end, key, seed) for start, end in pairwise(edges)]
        return [self._with(conditions=(*self._chain.conditions, part)) for part in parts]

    def shard(self, index: int, count: int) -> "Dataset":
        """Only one of `count` equal parts of the rows: every row is in exactly one of them, in every epoch."""
        if self._chain.shard is not None:
            raise ConfigError.at(
                "shard", f"this is shard {self._chain.shard.index} of {self._chain.shard.count} already"
            )
        is_taken = self._chain.take_rows or self._chain.take_batches or self._chain.take_in_all
        require(not is_taken, "shard", "stands after take; call it before, so that each shard takes its own")
        for number in (index, count):
            advice = "give the index, counted from 0, and the number of shards"
            require(is_whole(number), "shard", f"{number!r} is no whole number; {advice}")
        try:
            return self._with(shard=Shard(int(index), int(count)))
        except ValueError as error:
            raise ConfigError.at("shard", str(error)) from error

    def take(self, count: int) -> "Dataset":
        """Only the first rows; after `.batch`, the first batches. Of every epoch; after `.epochs`, of all together.

        Before `.shuffle` and `.shard` these are the first rows of the data, after them the first that come. After
        `.filter` or `.split` the data is read at once, up to the last of them.
        """
        count = whole_argument("take", count, "take at least one")
        chain = self._chain
        if chain.epochs != 1:
            field = "take_in_all"
        elif chain.cut is not None:
            field = "take_batches"
        elif chain.shuffling is None and chain.shard is None:
            field = "first_rows"
            if chain.conditions:
                with own_words():
                    count = rows_that_hold(chain, count)
        else:
            advice = "call it before shuffle and shard, or after batch, where it counts batches"
            require(
                not chain.conditions, "take", f"stands after filter or split and shuffle or shard; {advice}"
            )
            field = "take_rows"
        before = getattr(chain, field)
        return self._with(**{field: count if before is None else min(before, count)})

    def head(self, count: int = 10) -> "Dataset":
        """Only the first rows, for a look at them; only these are read."""
        require(self._chain.cut is None, "head", "stands after batch; call it before, or take(count) batches")
        return self.take(count)

    def shuffle(
        self, buffer: int | str | None = None, seed: int = 0, *, rows: int | None = None
    ) -> "Dataset":
        """Give rows in random order: blocks of the files in another order each epoch, rows drawn from a buffer.

        The buffer is in bytes, such as "64MiB", or a number of `rows`. The order follows from the data, the seed, the
        epoch and the buffer.
        """
        require(self._chain.shuffling is None, "shuffle", "the rows are shuffled already")
        is_before = self._chain.cut is None and self._chain.take_in_all is None
        require(is_before, "shuffle", "stands after batch or take; it mixes rows, so call it before")
        seed = whole_argument("shuffle", seed, "give a whole number", at_least=None, name="seed")
        require(
            (buffer is None) != (rows is None),
            "shuffle",
            "give the buffer as a size, '64MiB', or as rows=1000",
        )
        if rows is not None:
            rows = whole_argument("shuffle", rows, "a shuffle mixes 2 rows or more", at_least=2, name="rows")
            return self._with(shuffling=Shuffling(None, seed, rows))
        num_bytes = size_argument("shuffle", buffer, f", or rows={buffer} for so many rows")
        return self._with(shuffling=Shuffling(num_bytes, seed))

    # --- Batches -----------------------------------------------------------------------------------------

    def batch(
        self,
        rows: int | None = None,
        drop_remainder: bool = False,
        *,
        cost: str | None = None,
        limit: float | None = None,
        oversize: str | Oversize = Oversize.alone,
        max_rows: int | None = None,
        null_cost: float | None = None,
    ) -> "Dataset":
        """Batches of `rows` rows, or of as many rows as cost no more than `limit` together.

        The last batch of an epoch is short, unless `drop_remainder`. `cost` is a column of numbers, or the lengths of
        lists: "sum_of_lengths(clicks, carts)" or "max_of_lengths(clicks, carts)". A row that costs more than `limit`
        alone is a batch of its own ("alone"), an "error", or left out ("drop"); `max_rows` bounds the rows of a
        batch, and `null_cost` is the cost of a row that has none.
        """
        require(self._chain.cut is None, "batch", "there are batches already")
        advice = "stands after epochs and take; call take before epochs, or after batch"
        require(self._chain.take_in_all is None, "batch", advice)
        drop_remainder = flag_argument("batch", "drop_remainder", drop_remainder)
        if cost is None:
            of_cost = {"limit": limit, "oversize": oversize, "max_rows": max_rows, "null_cost": null_cost}
            for name, value in of_cost.items():
                advice = f"{name} counts only with cost=, the column that tells what a row costs"
                require(value in (None, Oversize.alone), "batch", advice)
            advice = "give the number of rows, at least one, or cost= and limit="
            return self._with(cut=ByRows(whole_argument("batch", rows, advice), drop_remainder))
        advice = "rows and cost say different things; give max_rows to bound the rows too"
        require(rows is None, "batch", advice)
        found = cost_of(cost, self._chain)
        if limit is None or not math.isfinite(limit := number_argument("batch", "limit", limit)):
            raise ConfigError.at("batch", f"limit is {limit}; say what a batch may cost at most")
        known = list(Oversize)
        require(oversize in known, "batch", f"oversize is {oversize!r}; {hint(str(oversize), known)}")
        if max_rows is not None:
            max_rows = whole_argument("batch", max_rows, "max_rows is a number of rows, at least one")
        if null_cost is not None:
            advice = "null_cost counts only with a column of costs; no length is ever missing"
            require(isinstance(found, ColumnCost), "batch", advice)
            null_cost = number_argument("batch", "null_cost", null_cost)
        try:
            rules = CostRules(limit, max_rows, Oversize(oversize), null_cost, drop_remainder)
        except ValueError as error:
            raise ConfigError.at("batch", str(error)) from error
        return self._with(cut=ByCost(found, rules))

    def map(self, fn: Callable[..., Any], seed: int | None = None, rows: bool = False) -> "Dataset":
        """Give what `fn` makes of each batch (a dict of arrays), or with `rows` of each row (a dict of values).

        It gives back a dict with one value for each row that came in, or for fewer: rows are left out by giving back
        shorter arrays, or None for a row, and make the batch shorter. It runs in the thread that reads, in order.
        With a seed, `fn(batch, generator)` gets a NumPy generator whose numbers follow from the seed, the epoch and
        the rows, and from nothing else: not from threads, workers, or where a loop went on.
        """
        if seed is not None:
            seed = whole_argument("map", seed, "give a whole number", at_least=None, name="seed")
        rows = flag_argument("map", "rows", rows)
        fn = function_argument(fn, seed, rows)
        advice = "there are no batches yet; call .batch before it, or give rows=True"
        require(self._chain.cut is not None or rows, "map", advice)
        step = MapStep(fn, seed, rows, len(self._chain.maps))
        return self._with(maps=(*self._chain.maps, step))

    def epochs(self, count: int | None = None) -> "Dataset":
        """Go over the rows `count` times in one loop, None: without end. No batch has rows of two epochs."""
        if count is not None:
            advice = "an iteration has at least one, and without a number no end"
            count = whole_argument("epochs", count, advice)
        return self._with(epochs=count)

    # --- How it is read ----------------------------------------------------------------------------------

    def prefetch(self, num_bytes: int | str = "64MiB") -> "Dataset":
        """Let a background thread make batches ahead, as many as fit into so many bytes."""
        return self._with(prefetch_bytes=size_argument("prefetch", num_bytes))

    def memory(self, limit: int | str) -> "Dataset":
        """Hold no more than so many bytes while reading: reader, shuffle buffer (twice) and prefetch together."""
        return self._with(memory_bytes=size_argument("memory", limit))

    # --- What is given out -------------------------------------------------------------------------------

    def to_numpy(self) -> "Dataset":
        """Give dicts of NumPy arrays, which is how a Dataset begins."""
        return Dataset(self._chain, Form.NUMPY)

    def to_arrow(self) -> "Dataset":
        """Give Arrow record batches."""
        require(self._chain.cut, "to_arrow", "record batches are batches; call .batch before it")
        return Dataset(self._chain, Form.ARROW)

    def to_torch(self) -> "TorchDataset":
        """A torch IterableDataset that gives dicts of tensors, by itself or in any DataLoader(..., batch_size=None)."""
        try:
            module = import_module("penstock.tensors.dataset")
        except ImportError as error:
            problem = f"torch cannot be imported ({error}); see docs/install.md"
            raise ConfigError.at("to_torch", problem) from error
        return module.TorchDataset(self._chain)  # type: ignore[no-any-return]

    def to_tf(self) -> Any:
        """A tf.data.Dataset that gives dicts of tensors; it needs TensorFlow (`pip install penstock[tf]`).

        It begins at a position that was loaded here before. TensorFlow reads ahead of its loop, so that one to go on
        from later is the number of batches that the loop has seen, not `state_dict`.
        """
        from penstock.data.tf_dataset import tf_dataset

        dataset = self if self._form is Form.NUMPY else self.to_numpy()
        chain = self._chain
        latest = dataset._latest
        is_whole = latest is None or not dataset._is_ready or latest.state_dict()["rows"]["row"] == 0
        is_known = is_whole and not (isinstance(chain.cut, ByCost) or chain.conditions or chain.maps)
        has_end = chain.epochs is not None or chain.take_in_all is not None
        return tf_dataset(dataset, chain, len(self) if is_known and has_end else None)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """The record batches of one pass, all of one schema: those of `.batch`, or as many rows as are handy.

        A Dataset without rows gives one without rows, where no map says otherwise what its columns are.
        """
        chain = self._chain
        if chain.cut is None:
            advice = "stands after epochs and take, which count rows here; call take before epochs"
            require(chain.take_in_all is None, "to_batches", advice)
            chain = replace(chain, cut=ByRows(_ROWS_AT_ONCE))
        schema: pa.Schema | None = None if chain.maps else chain.schema()
        is_empty = True
        for batch in Dataset(chain, Form.ARROW):
            schema, is_empty = schema or batch.schema, False
            if batch.schema != schema:
                was, now = (
                    {field.name: str(field.type) for field in each} for each in (schema, batch.schema)
                )
                name = next((name for name in was | now if was.get(name) != now.get(name)), "")
                problem = (
                    f"map: column '{name}' was {was.get(name, 'absent')} and is {now.get(name, 'absent')} now"
                )
                raise DataError(f"{problem}; return the same columns, types and order for every batch")
            yield batch
        if is_empty and schema is not None:
            yield pa.RecordBatch.from_pylist([], schema=schema)

    def write_parquet(self, path: str | os.PathLike[str]) -> int:
        """Write the rows of one pass to a file that ends in .parquet, or to parts in a new folder; gives their number.

        They are written a row group at a time, and appear when all are on disk; after an error nothing does.
        """
        target = path_text(path)
        require(
            not is_uri(target), "write_parquet", f"'{target}' is no local path; write to one, and copy it"
        )
        advice = "end it in .parquet, or in nothing for a folder of parts"
        suffix = Path(target).suffix
        require(suffix in ("", ".parquet"), "write_parquet", f"'{target}' ends in '{suffix}'; {advice}")
        try:
            return write_output(Path(target), self.to_batches(), "write_parquet")
        except OSError as error:
            raise DataError(f"{target}: cannot be written: {error.strerror or error}") from error

    # --- Iterating ---------------------------------------------------------------------------------------

    def __iter__(self) -> Pass:
        """A pass over the data: an iterator with `state_dict`, `load_state_dict` and `close`.

        It begins with the epoch after a pass that came to its end; one that was left is begun again.
        """
        opened = self._next_pass()
        self._is_ready = False

        def end() -> None:
            opened.set_epoch(opened.state_dict()["rows"]["epoch"] + 1)
            self._is_ready = self._is_ready or opened is self._latest

        return Pass(opened, end)

    def __len__(self) -> int:
        """Rows, or after `.batch` batches, of a whole pass.

        Where rows are filtered, or batches cut by cost, those columns are read once. What a map leaves out is counted.
        """
        first_epoch = self._first_epoch()
        if first_epoch not in self._lengths:
            with own_words():
                self._lengths[first_epoch] = num_elements(self._chain, first_epoch)
        return self._lengths[first_epoch]

    def __bool__(self) -> bool:
        """A Dataset is something, also when it has no rows."""
        return True

    def state_dict(self) -> State:
        """The position after the last element that the latest loop was given: plain values, ready for JSON."""
        return (self._latest or self._next_pass()).state_dict()

    def load_state_dict(self, state: State | Sequence[State]) -> None:
        """Let the next loop go on from a position; with a list of those of all shards, on any number of shards."""
        with own_words():
            position = position_in(self._chain, state)
            opened = open_pass(self._chain, self._form)
            opened.load_state_dict(position)
        self._latest, self._is_ready = opened, True

    def set_epoch(self, epoch: int) -> None:
        """Let the next loop begin with this epoch, whose order of rows it then has."""
        epoch = whole_argument("set_epoch", epoch, "epochs are counted from 0", at_least=0)
        with own_words():
            self._latest = open_pass(self._chain, self._form)
        self._latest.set_epoch(epoch)
        self._is_ready = True

    def _first_epoch(self) -> int:
        """The epoch with which the latest pass began, or the next one does."""
        return 0 if self._latest is None else int(self._latest.state_dict()["first_epoch"])

    def _next_pass(self) -> Opened:
        if self._latest is None or not self._is_ready:
            self.set_epoch(self._first_epoch())
        assert self._latest is not None
        return self._latest

    def _with(self, **changes: Any) -> "Dataset":
        return Dataset(replace(self._chain, **changes), self._form)

    def check_names(self, names: Sequence[str]) -> None:
        known = self._chain.names()
        for name in names:
            if name not in known:
                raise self._chain.no_column(name)

    def _require_rows(self, method: str) -> None:
        """It works on rows as they are read: refuse a place behind what has made something else of them."""
        require(
            not self._chain.maps, method, "stands after map; call it before, or leave rows out in the map"
        )
        is_before = self._chain.cut is None and self._chain.take_in_all is None
        require(
            is_before, method, "stands after batch or epochs and take; it works on rows, so call it before"
        )
