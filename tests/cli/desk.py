"""A folder with six rows of clicks and a run file over them, where `penstock` runs in this process."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import torch  # noqa: F401 - a command says that it imports torch, unless that has been done
from typer.testing import CliRunner, Result

from penstock.cli.app import app
from penstock.cli.command import Debug

RUN_FILE = """\
train_input_path: clicks.parquet
eval_input_path: clicks.parquet
model_dir: run
memory: {limit: 8GiB}
data_config:
  batch_size: 4
  fg_mode: FG_NORMAL
  label_fields: [click]
feature_configs:
  - id_feature: {feature_name: user, expression: "user:user_id", num_buckets: 100, embedding_dim: 4}
  - id_feature: {feature_name: item, expression: "item:item_id", num_buckets: 100, embedding_dim: 4}
  - raw_feature: {feature_name: price, expression: "item:price", default_value: "0"}
model_config:
  feature_groups:
    - {group_name: wide, group_type: WIDE, feature_names: [user, item]}
    - {group_name: deep, group_type: DEEP, feature_names: [user, item, price]}
  deepfm: {deep: {hidden_units: [4]}}
  losses: [{binary_cross_entropy: {}}]
  metrics: [{auc: {}}]
train_config:
  num_epochs: 1
  sparse_optimizer: {adagrad_optimizer: {lr: 0.1}}
  dense_optimizer: {adam_optimizer: {lr: 0.1}}
"""

CLICKS: dict[str, Any] = {
    "user_id": [1, 2, 3, 4, 5, 6],
    "item_id": [9, 8, 7, 6, 5, 4],
    "price": [0.5, 1.5, None, 2.5, 3.5, 4.5],
    "click": [0, 1, 0, 1, 0, 1],
}

Change = tuple[str, str]
"""A piece of the run file, and what stands there instead."""


@dataclass(frozen=True)
class Desk:
    """The folder, which is also the current one: what users see are short, relative paths."""

    folder: Path

    @classmethod
    def laid_out_in(cls, folder: Path) -> "Desk":
        """A desk with a run file and the data that it needs."""
        desk = cls(folder)
        desk.write_run()
        desk.write_clicks()
        return desk

    def penstock(self, *words: str) -> Result:
        """Run the program as a user would, without the seconds that a process of its own takes."""
        with messages_left_as_they_were():
            return CliRunner().invoke(app, list(words), prog_name="penstock")

    def write(self, name: str, content: str | bytes) -> None:
        """One file of the folder."""
        (self.folder / name).write_bytes(content.encode() if isinstance(content, str) else content)

    def write_run(self, *changes: Change) -> None:
        """The run file with pieces of its text exchanged, each of which it must have once."""
        text = RUN_FILE
        for old, new in changes:
            assert text.count(old) == 1, f"the run file has {text.count(old)} of {old!r}"
            text = text.replace(old, new)
        self.write("run.yaml", text)

    def write_clicks(self, name: str = "clicks.parquet", **columns: Any) -> None:
        """The six rows as a Parquet file, with columns exchanged (None: left out)."""
        kept = {column: values for column, values in (CLICKS | columns).items() if values is not None}
        pq.write_table(pa.table(kept), self.folder / name)

    def content(self) -> dict[str, bytes | None]:
        """Every file of the folder by name, and every folder (None), to see what a command left."""
        paths = self.folder.rglob("*")
        return {
            str(path.relative_to(self.folder)): None if path.is_dir() else path.read_bytes() for path in paths
        }


@contextmanager
def messages_left_as_they_were() -> Iterator[None]:
    """A program sets up logging for itself; here others come after it."""
    logger = logging.getLogger("penstock")
    handlers, level, propagate = logger.handlers, logger.level, logger.propagate
    try:
        with warnings.catch_warnings():
            yield
    finally:
        logger.handlers, logger.propagate = handlers, propagate
        logger.setLevel(level)
        Debug.shown = False
