"""The run files for preparation load, and name a function that is there."""

from pathlib import Path

import pytest

from penstock.prep.extract import load_extract
from penstock.prep.sample_data.game import HEADS
from penstock.run.run_file import load_run

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = ("small", "medium", "large")
DEFAULT_OUTPUT = "data/processed"


@pytest.mark.parametrize("size", SIZES)
def test_the_run_file_loads_and_its_function_is_found_beside_the_examples(size, monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES / "game"))
    preprocessing = load_run(EXAMPLES / f"prep_{size}.yaml").preprocessing

    assert load_extract(preprocessing.extract).__name__ == "samples"
    raw_files = "data/small" if size == "small" else "data/game"
    assert preprocessing.input_path == f"{raw_files}/replays/*.jsonl"


def test_imitation_has_a_tower_with_a_mask_for_each_choice_of_the_game():
    run = load_run(EXAMPLES / "imitation.yaml")

    assert run.train_input_path == f"{DEFAULT_OUTPUT}/*_train*"
    assert run.model.masks() == {f"masks_{head}": width for head, width in HEADS.items()}
    assert [tower.label_name for tower in run.model.task_towers] == [f"labels_{head}" for head in HEADS]
