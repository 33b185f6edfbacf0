"""A Dataset in one line."""

from collections.abc import Iterator

from penstock.config.sizes import format_size
from penstock.pipeline.dataset.chain import ByCost, ByRows, Chain


def describe(chain: Chain) -> str:
    """What was said of a source, in the order in which rows pass it; nothing that only a look at the data tells."""
    parts = [chain.source.name, *_rows(chain), *_batches(chain), *_bytes(chain)]
    return f"Dataset({'; '.join(parts)})"


def _rows(chain: Chain) -> Iterator[str]:
    if chain.columns is not None:
        yield f"columns {', '.join(chain.columns)}"
    if chain.first_rows is not None:
        yield f"the first {chain.first_rows:,} rows"
    if chain.shard is not None:
        yield f"shard {chain.shard.index} of {chain.shard.count}"
    if chain.shuffling is not None:
        yield f"shuffled in {format_size(chain.shuffling.buffer_bytes)} with seed {chain.shuffling.seed}"
    if chain.take_rows is not None:
        yield f"{chain.take_rows:,} rows of each epoch"


def _batches(chain: Chain) -> Iterator[str]:
    if isinstance(chain.cut, ByRows):
        yield f"batches of {chain.cut.num_rows:,} rows"
    if isinstance(chain.cut, ByCost):
        yield f"batches of {chain.cut.cost.name} up to {chain.cut.rules.limit:g}"
    if chain.maps:
        yield "mapped" if len(chain.maps) == 1 else f"mapped {len(chain.maps)} times"
    if chain.take_batches is not None:
        yield f"{chain.take_batches:,} batches of each epoch"
    if chain.epochs != 1:
        yield "epochs without end" if chain.epochs is None else f"{chain.epochs} epochs"
    if chain.take_in_all is not None:
        yield f"{chain.take_in_all:,} in all"


def _bytes(chain: Chain) -> Iterator[str]:
    if chain.prefetch_bytes is not None:
        yield f"prefetched in {format_size(chain.prefetch_bytes)}"
    if chain.memory_bytes is not None:
        yield f"inside {format_size(chain.memory_bytes)}"
