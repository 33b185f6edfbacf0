import subprocess
import sys

import pyarrow as pa
import torch

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


def test_every_batch_says_where_the_data_go_on_also_on_another_device():
    expected = numbers(loader())
    for index, batch in enumerate(loader()):
        after = loader()
        after.load_state_dict(batch.to(torch.device("cpu")).resume_state)

        assert numbers(after) == expected[index + 1 :]


def test_importing_the_package_does_not_import_torch():
    code = "import sys, penstock.tensors; sys.exit('torch' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
