import subprocess
import sys

import pyarrow as pa
import pytest
import torch

from penstock.config.errors import DataError
from penstock.features.build import build_features
from penstock.features.parser import Parser
from penstock.features.sections import FeatureConfig, ParsingSection
from penstock.readers.stream import with_row_ids
from penstock.tensors.loader import BatchLoader


class Batches:
    """A record stream over record batches in memory."""

    def __init__(self, *batches):
        self.batches, self.place, self.closed = batches, 0, False
        self.schema = batches[0].schema

    def __iter__(self):
        while self.place < len(self.batches):
            self.place += 1
            yield self.batches[self.place - 1]

    def state_dict(self):
        return {"place": self.place}

    def load_state_dict(self, state):
        self.place = state["place"]

    def set_epoch(self, epoch):
        self.place = 0

    def close(self):
        self.closed = True


def loader(**arguments):
    rows = pa.record_batch({"x": [0.0, 1.0, 2.0, 3.0, 4.0], "y": [0, 1, 0, 1, 0], "id": list("abcde")})
    stream = Batches(*(with_row_ids(rows.slice(begin, 2), 1, begin) for begin in (0, 2, 4)))
    config = FeatureConfig.model_validate({"raw_feature": {"feature_name": "x", "expression": "user:x"}})
    parser = Parser(build_features([config], ParsingSection()), ["y"], file_paths=["first", "second"])
    return BatchLoader(stream, parser, **arguments)


def numbers(batches):
    return [batch.dense_features["base"].values().flatten().tolist() for batch in batches]


def test_batches_of_the_stream():
    batches = list(loader(reserved_columns=["id"]))

    assert numbers(batches) == [[0, 1], [2, 3], [4]]
    assert [batch.labels["y"].tolist() for batch in batches] == [[0, 1], [0, 1], [0]]
    assert [batch.reserves.get().to_pydict() for batch in batches] == [
        {"id": ["a", "b"]},
        {"id": ["c", "d"]},
        {"id": ["e"]},
    ]
    assert batches[1].position.row_ids().tolist() == [(1 << 40) | 2, (1 << 40) | 3]


def test_without_labels():
    assert next(iter(loader(with_labels=False))).labels == {}


def test_it_resumes_after_every_batch():
    expected = numbers(loader())
    for stop in range(len(expected) + 1):
        before, after = loader(), loader()
        batches = iter(before)
        for _ in range(stop):
            next(batches)
        after.load_state_dict(before.state_dict())

        assert numbers(after) == expected[stop:]


def test_every_batch_says_where_the_data_go_on_also_on_another_device():
    expected = numbers(loader())
    for index, batch in enumerate(loader()):
        after = loader()
        after.load_state_dict(batch.to(torch.device("cpu")).resume_state)

        assert numbers(after) == expected[index + 1 :]


def test_another_epoch_starts_again():
    batches = loader()
    assert len(list(batches)) == 3
    assert list(batches) == []

    batches.set_epoch(1)

    assert len(list(batches)) == 3


def test_closing_closes_the_stream():
    batches = loader()

    batches.close()

    assert batches.stream.closed


def test_warming_takes_no_row():
    batches = loader()

    batches.warm()

    assert len(list(batches)) == 3


def test_a_bad_value_names_the_file_and_row():
    bad = loader()
    bad.stream.batches = (with_row_ids(pa.record_batch({"x": [1.0, None], "y": [0, 1]}), 1, 40),)

    with pytest.raises(DataError, match=r"^second: row 41: column 'x': expected 1 value"):
        list(bad)


def test_importing_the_package_does_not_import_torch():
    code = "import sys, penstock.tensors; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
