"""From replays to a model that imitates, with the run files of examples/: games, a store, and training on it."""

import json
from pathlib import Path

import pytest

from penstock.prep.sample_data.game import HEADS
from penstock.prep.sample_data.write import write_sample_data
from tests.end_to_end.conftest import Workplace

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder from which the function of the example is found, as with PYTHONPATH=examples/game."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "game"))
    return Workplace(tmp_path, tmp_path / "data", EXAMPLES / "imitation.yaml")


def test_every_head_learns_among_what_is_legal(place):
    game = write_sample_data("game", 3_000, place.data / "small")
    prepared = place.penstock("prep", EXAMPLES / "prep_small.yaml", "--plain")
    trained = place.penstock(
        "train", EXAMPLES / "imitation.yaml", "--model_dir", "run", "--batch-size", "128", "--memory", "8GiB"
    )

    assert prepared.code == 0, prepared.err
    assert trained.code == 0, trained.err
    metrics = json.loads((place.folder / "run/eval_result.jsonl").read_text().splitlines()[-1])["metrics"]
    for head in HEADS:
        assert game.labels[head].mean + 0.1 < metrics[f"accuracy_{head}"] < 1, head


@pytest.mark.parametrize("size", ["medium", "large"])
def test_the_larger_run_files_prepare_small_data_too(place, size):
    write_sample_data("game", 120, place.data / "game", num_files=24)
    done = place.penstock("prep", EXAMPLES / f"prep_{size}.yaml", "--plain", "--parallel", "false")

    assert done.code == 0, done.err
    splits = json.loads((place.data / "processed/manifest.json").read_text())["splits"]
    assert (sum(splits.values()), list(splits)) == (120, ["train", "val", "test"])
