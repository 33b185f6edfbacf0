"""A reader, feature, metric, optimizer, model and command, added to a copy of the sources.

Each takes its own file and a row in one list; nothing else of Penstock changes. All are then used by one run.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import penstock

READER = """
import json
from pathlib import Path

import pyarrow as pa

from penstock.readers.order import Blocks
from penstock.readers.scan import BlockDecoder, ReadSizes, ScannedFiles, ends_checksum


class JsonColumns(ScannedFiles):
    row_bytes, sizes = 100, ReadSizes(min_bytes=1000, ample_bytes=100_000, block_bytes=100_000)

    def __init__(self, files, names):
        self.files = tuple(files)
        self.tables = [pa.table(json.loads(Path(file.path).read_text())).select(names) for file in files]
        self.columns = self.tables[0].schema
        self.blocks = Blocks.of((index, 0, len(table)) for index, table in enumerate(self.tables))
        self.fingerprints = tuple((file.name, file.size_bytes, None, ends_checksum(file)) for file in files)

    def decoder(self, share):
        return Decoder(self.tables)


class Decoder(BlockDecoder):
    def __init__(self, tables):
        self.tables = tables

    def batches(self, block, first_row, end_row):
        yield from self.tables[block].slice(first_row, end_row - first_row).to_batches()

    def close(self):
        pass


def scan_columns(reading, files, request):
    return JsonColumns(files, request.columns)
"""

FEATURE = '''
from pydantic import PositiveInt

from penstock.features.sections.tables import EmbeddingOptions


class LengthFeature(EmbeddingOptions):
    """How long a word is, as a share of the longest."""

    expression: str
    longest: PositiveInt = 100


def length_recipe(config):
    from penstock.features.feature import Recipe

    def lengths(inputs):
        import numpy as np
        import pyarrow.compute as pc

        from penstock.features.strings import to_arrow
        from penstock.features.values import Values

        [words] = inputs
        sizes = pc.utf8_length(to_arrow(words.items)).to_numpy()
        return Values(np.minimum(sizes, config.longest) / config.longest, words.lengths)

    return Recipe((config.expression,), lengths, reads_text=True)
'''

METRIC = '''
import numpy as np

from penstock.metrics.inputs import number_rows
from penstock.metrics.sections import Best, MetricSection
from penstock.metrics.sums import RowMean, RowValues


class WorstSection(MetricSection):
    """Mean of the error to the fourth."""

    path = "penstock.metrics.worst:Worst"
    predictions = ("probs",)
    best = Best.min


class Worst(RowMean):
    name = "worst"

    def _row_values(self, preds, target):
        rows = number_rows(preds, target, self.name)
        return RowValues((rows.predictions - rows.labels) ** 4, rows.num_left_out)
'''

OPTIMIZER = '''
from penstock.optim.sections import DenseOptions


class NAdamOptimizer(DenseOptions):
    """Adam that looks ahead."""

    torch_class = "NAdam"
'''

MODEL_SECTION = '''
from penstock.config.section import Section


class Linear(Section):
    """A line through everything."""

    bias: bool = True
'''

MODEL = """
from torch import nn

from penstock.models.embeddings import EmbeddingGroup
from penstock.models.model import Model
from penstock.models.table_plan import plan_tables


class Linear(Model):
    def __init__(self, model, section, inputs):
        super().__init__(model, inputs)
        self.embedding_group = EmbeddingGroup(plan_tables(model.feature_groups, inputs.features), inputs.table_device)
        self.output = nn.Linear(self.embedding_group.widths["all"], 1, bias=section.bias)

    def predict(self, batch):
        return self.tasks[0].predictions(self.output(self.embedding_group(batch)["all"]), batch)
"""

COMMAND = '''
def greet(name: str) -> None:
    """Say hello."""
    print(f"hello {name}")
'''


@dataclass
class Addition:
    """New files, and the lines that name them in one file that is there."""

    files: dict[str, str]
    list_file: str
    before: str
    """A pattern: the row goes before the first line of the list file that matches."""

    row: str
    imported: str = ""


ADDITIONS = {
    "reader": Addition(
        {"readers/json_columns.py": READER},
        "readers/__init__.py",
        r'    "ParquetDataset":',
        '    "ColumnsDataset": Format("penstock.readers.json_columns:scan_columns", (".columns",)),',
    ),
    "feature": Addition(
        {"features/length.py": FEATURE},
        "features/sections/__init__.py",
        r'    "id_feature":',
        '    "length_feature": FeatureRow(LengthFeature, "penstock.features.length:length_recipe"),',
        "from penstock.features.length import LengthFeature",
    ),
    "metric": Addition(
        {"metrics/worst.py": METRIC},
        "metrics/sections.py",
        r'    "auc":',
        '    "worst": WorstSection,',
        "from penstock.metrics.worst import WorstSection",
    ),
    "optimizer": Addition(
        {"optim/nadam.py": OPTIMIZER},
        "optim/sections/__init__.py",
        r'    "sgd_optimizer":',
        '    "nadam_optimizer": NAdamOptimizer,',
        "from penstock.optim.nadam import NAdamOptimizer",
    ),
    "model": Addition(
        {"models/sections/linear.py": MODEL_SECTION, "models/linear.py": MODEL},
        "models/sections/__init__.py",
        r'    "dlrm":',
        '    "linear": ModelRow(Linear, "penstock.models.linear:Linear"),',
        "from penstock.models.sections.linear import Linear",
    ),
    "command": Addition(
        {"cli/greet.py": COMMAND},
        "cli/app.py",
        r"app\.command\(\)\(train\)",
        "app.command()(greet)",
        "from penstock.cli.greet import greet",
    ),
}

RUN = """
train_input_path: rows.columns
eval_input_path: rows.columns
model_dir: run
memory: {limit: 8GiB}
data_config: {batch_size: 50, fg_mode: FG_NORMAL, label_fields: [y]}
feature_configs:
  - length_feature: {feature_name: length, expression: "user:word", longest: 8}
  - id_feature: {feature_name: user, expression: "user:user", num_buckets: 10, embedding_dim: 4}
train_config:
  sparse_optimizer: {adagrad_optimizer: {lr: 0.1}}
  dense_optimizer: {nadam_optimizer: {lr: 0.1}}
  num_epochs: 20
  log_step_count_steps: 40
model_config:
  linear: {bias: true}
  feature_groups: [{group_name: all, feature_names: [length, user], group_type: DEEP}]
  losses: [{binary_cross_entropy: {}}]
  metrics: [{worst: {}}, {auc: {}}]
"""


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with every addition."""
    folder = tmp_path_factory.mktemp("sources")
    package = folder / "penstock"
    shutil.copytree(Path(penstock.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    for addition in ADDITIONS.values():
        for name, text in addition.files.items():
            assert not (package / name).exists()
            (package / name).write_text(f'"""Added by a test."""\n{text}')
        insert_row(package / addition.list_file, addition)
    return folder


def insert_row(path: Path, addition: Addition) -> None:
    """Write the row into its list, and the import before the statement that the list is part of."""
    lines = path.read_text().splitlines()
    at = next(index for index, line in enumerate(lines) if re.match(addition.before, line))
    lines.insert(at, addition.row)
    if addition.imported:
        statement = next(
            index for index in range(at, 0, -1) if not lines[index - 1] and lines[index][0].isalpha()
        )
        lines.insert(statement, addition.imported)
    path.write_text("\n".join(lines) + "\n")


def run_penstock(sources: Path, folder: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    command = [sys.executable, "-m", "penstock", *words]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_one_run_uses_what_was_added(sources: Path, tmp_path: Path):
    words = ["a", "bb", "ccc", "dddd", "eeeee"] * 40
    columns = {
        "user": [i % 10 for i in range(200)],
        "word": words,
        "y": [int(len(word) > 2) for word in words],
    }
    (tmp_path / "rows.columns").write_text(json.dumps(columns))
    (tmp_path / "run.yaml").write_text(RUN)

    run_penstock(sources, tmp_path, "train", "run.yaml")

    found = json.loads((tmp_path / "run" / "eval_result.jsonl").read_text().splitlines()[-1])["metrics"]
    assert found["auc"] > 0.99
    assert 0 < found["worst"] < 0.1


def test_the_schema_and_the_commands_have_them(sources: Path, tmp_path: Path):
    schema = run_penstock(sources, tmp_path, "schema")

    assert all(
        f'"{name}"' in schema
        for name in ("ColumnsDataset", "length_feature", "worst", "nadam_optimizer", "linear")
    )
    assert run_penstock(sources, tmp_path, "greet", "you") == "hello you\n"
