"""Ranges of rows out of blocks, one block held at a time: a cut inside a block draws nothing twice."""

from collections.abc import Iterator

from penstock.prep.sample_data.block import BLOCK_ROWS, Block, SampleKind


class RowSource:
    """Gives any range of a kind's rows; ranges in ascending order are cheapest."""

    def __init__(self, kind: SampleKind) -> None:
        self._kind = kind
        self._block_index = -1
        self._block: Block | None = None

    def pieces(self, start: int, stop: int) -> Iterator[Block]:
        """The rows from start up to stop, in pieces of at most one block."""
        while start < stop:
            index, first = divmod(start, BLOCK_ROWS)
            last = min(first + stop - start, BLOCK_ROWS)
            yield self._load(index).slice(first, last)
            start += last - first

    def _load(self, index: int) -> Block:
        if self._block is None or index != self._block_index:
            self._block, self._block_index = self._kind.block(index), index
        return self._block


def sample_blocks(kind: SampleKind, start: int, stop: int) -> Iterator[Block]:
    """The rows from start up to stop with their true probabilities, without any file."""
    return RowSource(kind).pieces(start, stop)
