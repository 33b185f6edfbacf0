"""`penstock init` on tables of different kinds, trained with no edit; docs/init.md has the figures.

Three of them lie beside the repository and are no part of it: without them they are left out.
"""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.prep.sample_data.write import write_sample_data
from tests.end_to_end.starting_tables import write_visits, write_wide

SHARED = Path(__file__).parents[3] / "shared" / "data"


@dataclass(frozen=True)
class Table:
    """Data, and the AUC that an unedited run must reach on rows that it was not trained on."""

    lowest_auc: float
    make: Callable[[Path], object] | None = None
    """Writes the data to a path; None: they are in the folder of this name beside the repository."""
    path: str = "data"
    test: str = "run_data/valid.parquet"
    left_out: tuple[str, ...] = ()
    """Columns that tell the label, or say nothing."""


TABLES = {
    "adult": Table(0.9206),
    "ml-latest-small": Table(0.7637, left_out=("rating",)),
    "kuairand": Table(0.6851, left_out=("long_view", "play_time_ms", "comment_stay_time", "is_like")),
    "clicks": Table(
        0.78,
        lambda path: write_sample_data("clicks", 100_000, path, format="csv"),
        test="data/test",
        left_out=("buy", "watch_seconds"),
    ),
    "visits": Table(0.745, write_visits, "visits.csv"),
    "wide": Table(0.89, write_wide, "wide.parquet"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_what_init_writes_is_a_good_baseline(name: str, tmp_path: Path):
    table = TABLES[name]
    data, test = str(tmp_path / table.path), str(tmp_path / table.test)
    if table.make is not None:
        table.make(Path(data))
    else:
        data, test = str(SHARED / name), str(SHARED / name / "test.parquet")
        if not Path(data).exists():
            pytest.skip(f"{data}: no such folder; the data are not part of the repository")

    _penstock(tmp_path, "init", data)
    left_out = (tmp_path / "run.yaml").read_text().partition("feature_configs:")[0]
    assert all(f"#   {column}: " in left_out for column in table.left_out)
    _penstock(tmp_path, "train", "run.yaml")
    [model_dir] = (tmp_path / "runs").iterdir()
    assert json.loads((model_dir / "data_profile.json").read_text())["remarks"] == []
    evaluation = [
        "--checkpoint_path",
        "best",
        "--eval_input_path",
        test,
        "--eval_result_filename",
        "test.json",
    ]
    _penstock(tmp_path, "eval", "run.yaml", *evaluation)

    assert json.loads((model_dir / "test.json").read_text())["metrics"]["auc"] >= table.lowest_auc


def _penstock(folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "penstock", *words]
    done = subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
