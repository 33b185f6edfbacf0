"""The data path of a run, with parsing and packing, over random rows."""

from collections.abc import Iterator
from contextlib import contextmanager

from penstock.config.sizes import MIB, parse_size
from penstock.data.cut import RowCut
from penstock.data.memory_plan import FLIGHT_PER_WORKER
from penstock.data.prefetch import Prefetch
from penstock.data.shuffle import Shuffle
from penstock.features.parser import Parser
from penstock.readers.files import list_files
from penstock.readers.scan import BlockStream, ReadRequest, scan_files
from penstock.readers.sections import ReadingSection
from penstock.runtime.budget import Share
from penstock.tensors.batch import Batch
from penstock.tensors.loader import BatchLoader


@contextmanager
def batches_of(
    path: str, shuffle_buffer: str, batch_rows: int, num_workers: int
) -> Iterator[Prefetch[Batch]]:
    """Shuffled batches of two label columns, parsed here or in workers."""
    files = list_files(path)
    labels = ["id_0", "id_1"]
    scanned = scan_files(ReadingSection(), files, ReadRequest(labels))
    rows = BlockStream(scanned, Share("reader", scanned.sizes.ample_bytes), seed=7)
    mixed = Shuffle(rows, parse_size(shuffle_buffer) // scanned.row_bytes, seed=7)
    cut = RowCut(mixed, batch_rows)
    share = Share("workers", max(1, num_workers * FLIGHT_PER_WORKER * batch_rows * scanned.row_bytes))
    parser = Parser([], labels, file_paths=[file.path for file in files])
    loader = BatchLoader(cut, parser, num_workers=num_workers, worker_share=share)
    with Prefetch(loader, Share("prefetch", 16 * MIB)) as batches:
        yield batches
