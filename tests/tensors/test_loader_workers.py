"""The same batches and the same places for any number of workers."""

import json
import os
import pickle
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import psutil
import pyarrow as pa
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal as assert_same

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.data.cut import RowCut
from penstock.data.prefetch import Prefetch
from penstock.data.shuffle import Shuffle
from penstock.features import build_features
from penstock.features.parser import Parser
from penstock.features.sections import FeatureConfig, FgMode, ParsingSection
from penstock.readers.stream import ROW_FIELD, RecordStream, StreamPosition, with_row_ids
from penstock.runtime.budget import Share
from penstock.tensors.loader import BatchLoader

NUM_ROWS = 47
ROWS = pa.record_batch(
    {
        "x": [row / 2 for row in range(NUM_ROWS)],
        "id": pa.array([row % 7 for row in range(NUM_ROWS)], pa.int64()),
        "tags": ["|".join(f"t{tag}" for tag in range(row % 4)) for row in range(NUM_ROWS)],
        "y": [row % 2 for row in range(NUM_ROWS)],
    }
)
FEATURES = [
    {"raw_feature": {"feature_name": "x", "expression": "user:x"}},
    {"id_feature": {"feature_name": "id", "expression": "user:id", "num_buckets": 7, "embedding_dim": 4}},
    {
        "id_feature": {
            "feature_name": "tags",
            "expression": "item:tags",
            "separator": "|",
            "hash_bucket_size": 100,
            "embedding_dim": 4,
        }
    },
]


class Rows(RecordStream):
    """All rows of ROWS, five at a time."""

    def __init__(self, rows=ROWS):
        self._rows, self.position = with_row_ids(rows, 1, 0), StreamPosition(0)

    schema = ROWS.schema.append(ROW_FIELD)
    order = {"files": [], "blocks": 0, "seed": None, "shard": [0, 1]}

    def __iter__(self):
        while self.position.row < self._rows.num_rows:
            begin = self.position.row
            self.position = self.position.at(min(begin + 5, self._rows.num_rows))
            yield self._rows.slice(begin, 5)


def parser():
    features = build_features(
        [FeatureConfig.model_validate(config) for config in FEATURES],
        ParsingSection(fg_mode=FgMode.FG_NORMAL),
    )
    return Parser(features, ["y"], file_paths=["first", "second"])


def workers(count):
    return {"num_workers": count, "worker_share": Share("workers", MIB)}


def loader(count, rows=ROWS):
    cut = RowCut(Shuffle(Rows(rows), 20, seed=3), 4)
    return BatchLoader(cut, parser(), reserved_columns=["tags"], **workers(count))


def plain(batch):
    """A batch as something that can be compared."""
    tensors = {name: tensor.tolist() for name, tensor in batch.to_dict().items()}
    return tensors, batch.reserves.get().to_pydict(), str(batch.position), batch.position.row_ids().tolist()


COUNTS = (0, 1, 2)
"""Each worker takes a second to start; from two on they share the work, and their answers have to be put in order."""


@pytest.fixture(scope="module")
def kept():
    """Loaders that are used again, as over epochs, by their number of workers."""
    loaders = {count: loader(count) for count in COUNTS}
    yield loaders
    for one in loaders.values():
        one.close()


def epoch_of(one, epoch=0):
    one.set_epoch(epoch)
    return [plain(batch) for batch in one]


def test_batches_do_not_depend_on_the_number_of_workers(kept):
    expected = epoch_of(kept[0])
    assert sorted(row for *_, rows in expected for row in rows) == [
        (1 << 40) | row for row in range(NUM_ROWS)
    ]
    for count in COUNTS:
        assert epoch_of(kept[count]) == expected


@settings(max_examples=12)
@given(
    before=st.sampled_from(COUNTS),
    after=st.sampled_from(COUNTS),
    epoch=st.integers(0, 2),
    stop=st.integers(0, 12),
)
def test_a_place_means_the_same_for_any_number_of_workers(kept, before, after, epoch, stop):
    expected = epoch_of(kept[0], epoch)
    first, second = kept[before], kept[after]
    first.set_epoch(epoch)
    batches = iter(first)
    taken = [plain(next(batches)) for _ in range(stop)]
    saved = json.loads(json.dumps(first.state_dict()))

    second.load_state_dict(saved)

    assert second.state_dict() == saved
    assert taken + [plain(batch) for batch in second] == expected


def test_every_batch_says_where_the_data_go_on_also_on_another_device(kept):
    one = kept[0]
    expected = epoch_of(one)
    one.set_epoch(0)
    states = [batch.to(torch.device("cpu")).resume_state for batch in one]
    for index in (0, 5, len(states) - 1):
        one.load_state_dict(states[index])
        assert [plain(batch) for batch in one] == expected[index + 1 :]


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("raw_feature", {"expression": "user:x", "normalizer": "method=expression,expr=log(x + 1) * -2"}),
        ("raw_feature", {"expression": "user:x", "boundaries": [1.0, 5.0, 9.0], "embedding_dim": 4}),
        ("id_feature", {"expression": "item:tags", "vocab_list": ["t0", "t1"], "embedding_dim": 4}),
    ],
    ids=str,
)
def test_features_go_to_workers_also_after_they_were_used(kind, options):
    config = FeatureConfig.model_validate({kind: {"feature_name": "f", **options}})
    features = build_features([config], ParsingSection(fg_mode=FgMode.FG_NORMAL))
    here = Parser(features).parse
    expected = here(ROWS).features["f"]

    there = pickle.loads(pickle.dumps(here))  # noqa: S301

    assert_same(there(ROWS).features["f"].values, expected.values)


@pytest.mark.slow
def test_workers_never_load_torch():
    # In a fresh program: the fork server of this one may have been told by another test what to load.
    root = Path(__file__).parents[2]
    code = (
        "from contextlib import closing; from pathlib import Path\n"
        "from tests.tensors.test_loader_workers import epoch_of, loader\n"
        "with closing(loader(1)) as batches:\n"
        "    epoch_of(batches)\n"
        "    (pid,) = batches._workers.pids\n"
        "    assert 'libtorch' not in Path(f'/proc/{pid}/maps').read_text()"
    )
    paths = {"PYTHONPATH": f"{root}{os.pathsep}{root / 'src'}"}
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **paths})


def test_a_bad_value_has_its_file_and_row():
    rows = ROWS.set_column(1, "id", pa.array([*range(7), 9, *([0] * (NUM_ROWS - 8))], pa.int64()))
    cut = RowCut(Rows(rows), 4)
    with closing(BatchLoader(cut, parser(), **workers(1))) as bad:
        batches = iter(bad)
        next(batches)
        with pytest.raises(DataError, match=r"^second: row 7: column 'id': value 9 is outside 0 to 6"):
            next(batches)
        assert bad.state_dict()["row"] == 4


@pytest.mark.parametrize("count", [0, 2])
def test_what_is_unknown_is_counted_with_each_batch(count):
    rows = ROWS.set_column(1, "id", pa.array([*range(7), 9, None, *([0] * (NUM_ROWS - 9))], pa.int64()))
    options = workers(count) if count else {}
    with closing(
        BatchLoader(RowCut(Rows(rows), 6), replace(parser(), counts_values=True), **options)
    ) as batches:
        counts = [batch.value_counts["id"] for batch in batches]

    assert [(each.rows, each.missing, each.unknown) for each in counts] == [
        (6, 0, 0),
        (6, 1, 1),
        *([(6, 0, 0)] * 5),
        (5, 0, 0),
    ]


def test_the_workers_end_with_the_prefetch_that_stands_in_front_of_them():
    with Prefetch(loader(2), Share("prefetch", MIB)) as batches:
        next(iter(batches))
        pids = batches.source._workers.pids
        assert len(pids) == 2
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_parsed_memory_is_the_batchs_own(kept):
    one = kept[2]
    one.set_epoch(0)
    batches = list(one)
    held = [plain(batch) for batch in batches]
    one.set_epoch(1)
    list(one)
    assert [plain(batch) for batch in batches] == held


def own_bytes():
    """What this process and its workers have for themselves: no files, which others on the machine may have mapped."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    lines = [
        line.split()
        for process in processes
        for line in Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
    ]
    return sum(1024 * int(line[1]) for line in lines if line[0] in ("Pss_Anon:", "Pss_Shmem:"))


@pytest.mark.slow
def test_memory_stays_flat_over_twenty_epochs_with_workers():
    rows = pa.concat_batches([ROWS] * 1600)
    share = Share("workers", 32 * MIB)
    loader = BatchLoader(RowCut(Rows(rows), 2048), parser(), num_workers=2, worker_share=share)
    taken_bytes = []
    with Prefetch(loader, Share("prefetch", MIB)) as batches:
        for epoch in range(24):
            batches.set_epoch(epoch)
            for _, _ in zip(batches, range(30 if epoch % 3 else 1000), strict=False):
                pass
            taken_bytes.append(own_bytes())
            assert share.peak_bytes <= share.limit_bytes
    assert share.held_bytes == 0
    # A process may grow by a few MiB for reasons of its own; twelve epochs that were kept would be 27MiB.
    assert max(taken_bytes[12:]) <= max(taken_bytes[4:12]) + 12 * rows.nbytes // 2
