"""From the reading options and the files to the stream that reads them."""

from collections.abc import Sequence

from penstock.readers.blocks import Shard
from penstock.readers.files import DataFile
from penstock.readers.reading import ONE_SHARD, BlockStream, read_blocks
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import Wanted, survey
from penstock.runtime.budget import Share


def open_reader(
    reading: ReadingSection,
    files: Sequence[DataFile],
    wanted: Wanted,
    share: Share,
    *,
    seed: int | None = None,
    shard: Shard = ONE_SHARD,
) -> BlockStream:
    """A stream over the rows of the files, in their order or with blocks permuted per epoch by a seed.

    Missing columns, changed types and torn files are found here, before the first batch.
    """
    return read_blocks(survey(reading, files, wanted), share, seed, shard)
