"""A store in random order, through a bounded memory."""

import re

import numpy as np
import pytest

from penstock.config.errors import ConfigError
from penstock.config.sizes import MIB, parse_size
from penstock.prep.merge.batches import find_batches
from penstock.prep.merge.copy import plan_buckets
from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import MergeOptions, SplitShares
from penstock.prep.merge.plan import plan_merge
from penstock.readers.batch_files import save_batch

WIDTH = 500


def write_numbered(folder, sizes, **how):
    """Samples that know their number, wide enough to need several buckets of a megabyte."""
    folder.mkdir()
    first = 0
    for place, size in enumerate(sizes):
        numbers = np.arange(first, first + size)
        features = np.repeat(numbers.astype(np.float32)[:, None], WIDTH, axis=1)
        arrays = {"strategic_features": features, "labels_number": numbers.astype(np.int32)}
        save_batch(folder / f"batch_{place:03d}.batch", arrays, **how)
        first += size


def test_too_little_memory_is_said_before_anything_is_written(tmp_path):
    write_numbered(tmp_path / "in", [4000])
    options = MergeOptions(shuffle=True, memory_bytes=MIB, workers=400)

    message = (
        r"memory.limit: leaves 1MiB to the shuffle \(memory_bytes\), but for 7\.7MiB in 400 processes it takes "
        "98.2MiB; raise it, or lower merge_workers"
    )
    with pytest.raises(ConfigError, match=message):
        merge(tmp_path / "in", tmp_path / "out", options=options)

    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("part_bytes", "splits"), [(MIB, None), (1, SplitShares())])
def test_as_much_memory_as_was_said_is_enough(tmp_path, part_bytes, splits):
    write_numbered(tmp_path / "in", [400] * 10)
    batches = find_batches(tmp_path / "in")
    how = {"shuffle": True, "workers": 400, "part_bytes": part_bytes, "splits": splits}
    with pytest.raises(ConfigError) as told:
        plan_buckets(plan_merge(batches, MergeOptions(memory_bytes=MIB, **how)))

    enough_bytes = parse_size(re.search(r"it takes (\S+);", str(told.value))[1])

    buckets = plan_buckets(plan_merge(batches, MergeOptions(memory_bytes=enough_bytes, **how)))

    assert len(buckets.ends) > 1
