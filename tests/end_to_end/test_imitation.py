"""From replays to a model that imitates: generated games, samples, a store, and examples/imitation.yaml on it."""

import json
from pathlib import Path

import pytest

from penstock.prep.preparing.extract_function import load_extract
from penstock.prep.sample_data import write_sample_data
from penstock.prep.sample_data.game.rules import HEADS
from penstock.store.batch_file import save_batch
from penstock.store.merge import MergeOptions, SplitShares, merge
from penstock.store.samples import samples_to_arrays
from tests.end_to_end.conftest import Workplace

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def game(tmp_path, monkeypatch):
    """The summary of 3,000 decisions, whose store is at data/processed."""
    monkeypatch.syspath_prepend(str(EXAMPLES / "game"))
    extract = load_extract("replays:samples")
    summary = write_sample_data("game", 3_000, tmp_path / "data/game")
    (tmp_path / "batches").mkdir()
    for number, name in enumerate(summary.splits["replays"].files):
        arrays = samples_to_arrays(extract(str(tmp_path / "data/game" / name)))
        save_batch(tmp_path / f"batches/batch_{number:04d}.batch", arrays)
    options = MergeOptions(SplitShares(0.8, 0.2, 0.0), shuffle=True)
    merge(tmp_path / "batches", tmp_path / "data/processed", options=options)
    return summary


def test_every_head_learns_among_what_is_legal(tmp_path, game):
    place = Workplace(tmp_path, tmp_path / "data", EXAMPLES / "imitation.yaml")
    done = place.penstock(
        "train", EXAMPLES / "imitation.yaml", "--model_dir", "run", "--set", "data_config.batch_size=128"
    )

    assert done.code == 0, done.err
    metrics = json.loads((tmp_path / "run/eval_result.jsonl").read_text().splitlines()[-1])["metrics"]
    for head in HEADS:
        assert game.labels[head].mean + 0.1 < metrics[f"accuracy_{head}"] < 1, head
