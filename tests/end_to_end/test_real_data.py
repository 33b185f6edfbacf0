"""The examples on real data: how good the model gets, and that the epoch was chosen on the validation rows.

The data lie beside the repository and are no part of it; without them, only what the run files say is tested.
docs/real-data.md holds the results of several seeds beside those of other libraries.
"""

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.features import build_features

REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class RealRun:
    """An example, the data it is written for, and the test AUC that it must reach."""

    example: str
    data: str
    num_valid_rows: int
    num_test_rows: int
    lowest_auc: float

    @property
    def run_file(self) -> Path:
        """The run file, with paths relative to the repository."""
        return REPOSITORY / "examples" / self.example

    @property
    def test_file(self) -> str:
        """Rows that neither training nor the choice of the epoch has seen."""
        return f"../shared/data/{self.data}/test.parquet"


REAL_RUNS = [
    RealRun("adult.yaml", "adult", num_valid_rows=3_256, num_test_rows=16_281, lowest_auc=0.909),
    RealRun(
        "movielens.yaml", "ml-latest-small", num_valid_rows=10_059, num_test_rows=10_358, lowest_auc=0.762
    ),
    RealRun(
        "movielens_din.yaml", "ml-latest-small", num_valid_rows=10_059, num_test_rows=10_358, lowest_auc=0.757
    ),
]
every_real_run = pytest.mark.parametrize("real_run", REAL_RUNS, ids=lambda real_run: real_run.example)


@pytest.mark.slow
@every_real_run
def test_the_epoch_that_is_best_on_valid_reaches_the_bar_on_test(real_run: RealRun, tmp_path: Path):
    if not (REPOSITORY / real_run.test_file).exists():
        pytest.skip(f"{real_run.test_file}: no such file; the data are not part of the repository")
    num_epochs = penstock.load_run(real_run.run_file).train_config.num_epochs

    _penstock("train", real_run.run_file, "--model_dir", tmp_path)
    assert json.loads((tmp_path / "data_profile.json").read_text())["remarks"] == []
    _penstock(
        "eval", real_run.run_file, "--model_dir", tmp_path, "--checkpoint_path", "best",
        "--eval_input_path", real_run.test_file, "--eval_result_filename", "test.json",
    )  # fmt: skip

    on_valid = [json.loads(line) for line in (tmp_path / "eval_result.jsonl").read_text().splitlines()]
    assert [result["epoch"] for result in on_valid] == list(range(1, num_epochs + 1))
    assert {result["rows"] for result in on_valid} == {real_run.num_valid_rows}
    on_test = json.loads((tmp_path / "test.json").read_text())
    assert on_test["step"] == max(on_valid, key=_auc)["step"]
    assert on_test["rows"] == real_run.num_test_rows
    assert _auc(on_test) >= real_run.lowest_auc


@pytest.mark.parametrize("example", ["movielens.yaml", "movielens_din.yaml"])
def test_nothing_that_tells_the_label_is_a_feature_of_movielens(example: str):
    run = penstock.load_run(REPOSITORY / "examples" / example)
    features = build_features(run.feature_configs, run.data_config)

    columns = {column for feature in features for column in feature.inputs}
    assert columns == {"userId", "movieId", "hour", "year", "genres", "hist", "hist_genre"}


def _auc(result: dict[str, Any]) -> float:
    """The AUC of one evaluation."""
    return float(result["metrics"]["auc"])


def _penstock(*words: str | Path) -> None:
    """Run a command as the example says, from the repository's folder."""
    done = subprocess.run(
        [sys.executable, "-m", "penstock", *map(str, words)],
        cwd=REPOSITORY,
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
