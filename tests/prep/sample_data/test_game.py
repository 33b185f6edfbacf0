"""Replays of games: which files, which bytes, and what the summary promises about them."""

import importlib.util
import json
import sys
from itertools import islice
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from penstock.config.errors import ConfigError
from penstock.prep.sample_data.blocks import read_summary
from penstock.prep.sample_data.game import HEADS, NUM_PAST, Game
from penstock.prep.sample_data.write import write_sample_data

GAME = Game(0)


def lines_of(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_each_player_of_each_match_has_a_file_with_as_many_decisions_as_it_says(tmp_path):
    summary = write_sample_data("game", 60, tmp_path / "out", num_files=3)
    replays = [lines_of(tmp_path / "out" / name) for name in summary.splits["replays"].files]

    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["replays", "sample.json"]
    assert [(replay[0]["match"], replay[0]["player"]) for replay in replays] == [
        ("match-00000", 0),
        ("match-00000", 1),
        ("match-00001", 0),
    ]
    assert (
        [replay[0]["decisions"] for replay in replays]
        == [len(replay) - 1 for replay in replays]
        == [11, 34, 15]
    )


def test_a_decision_depends_on_seed_game_and_its_number_alone(tmp_path):
    write_sample_data("game", 10, tmp_path / "few", num_files=1)
    write_sample_data("game", 300, tmp_path / "many", num_files=2)
    few, many = (lines_of(tmp_path / name / "replays/game-00000.jsonl")[1:] for name in ("few", "many"))

    assert few == many[:10]
    assert len(many) > 64  # drawn in several chunks


def test_past_actions_are_those_of_the_decisions_before_also_over_chunks():
    chunks = list(islice(GAME.decisions(5), 2))
    actions = np.concatenate([chunk.choices["action_type"].labels_N for chunk in chunks])
    past = np.concatenate([chunk.past_NP for chunk in chunks])

    assert past[0].tolist() == [-1] * NUM_PAST
    for place in (1, 3, 64, 100):
        before = actions[max(0, place - NUM_PAST) : place][::-1]
        assert past[place].tolist() == before.tolist() + [-1] * (NUM_PAST - len(before))


def test_only_legal_choices_are_made_and_the_attainable_accuracy_is_that_of_the_likeliest(tmp_path):
    summary = write_sample_data("game", 64, tmp_path / "out", num_files=1)
    decisions = next(GAME.decisions(0))

    assert read_summary(tmp_path / "out") == summary
    for head, choice in decisions.choices.items():
        rows = np.arange(64)
        assert decisions.legal[head][rows, choice.labels_N].all()
        assert not choice.probabilities_NK[~decisions.legal[head]].any()
        assert choice.probabilities_NK.sum(axis=1) == pytest.approx(1.0)
        found = summary.labels[head]
        assert found.attainable_accuracy == np.mean(choice.probabilities_NK.argmax(axis=1) == choice.labels_N)
        assert found.mean == np.bincount(choice.labels_N).max() / 64


def test_wrong_arguments_give_one_line_and_write_nothing(tmp_path):
    for arguments, message in (
        ({"num_files": 11}, "11 games need more than 10 rows; ask for more rows or fewer files"),
        (
            {"with_truth": True},
            "kind 'game' is raw data with a form of its own: with_truth means nothing here;",
        ),
    ):
        with pytest.raises(ConfigError, match=message):
            write_sample_data("game", 10, tmp_path / "out", **arguments)
        assert list(tmp_path.iterdir()) == []


EXAMPLE = Path(__file__).parents[3] / "examples/game/replays.py"


@pytest.fixture(scope="module")
def replays() -> ModuleType:
    spec = importlib.util.spec_from_file_location("replays", EXAMPLE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert "penstock" not in {name for name in vars(module) if name in sys.modules}
    return module


@pytest.fixture(scope="module")
def games(replays, tmp_path_factory):
    folder = tmp_path_factory.mktemp("game") / "out"
    write_sample_data("game", 2_400, folder, num_files=6)
    return [list(replays.samples(file)) for file in sorted((folder / "replays").iterdir())]


def test_features_and_masks_are_those_that_choices_were_drawn_from(games):
    decisions = next(Game(0).decisions(0))
    samples = games[0][:64]

    features = np.stack([sample["features"] for sample in samples])
    assert features.dtype == np.float32
    is_past = decisions.past_NP[:, :, None] == np.arange(HEADS["action_type"])
    expected = np.concatenate([decisions.states.seen_features(), is_past.reshape(64, -1)], axis=1)
    np.testing.assert_allclose(features, expected[: len(samples)], rtol=1e-6)
    for head in HEADS:
        masks = np.stack([sample["masks"][head] for sample in samples])
        assert masks.dtype == np.int8
        assert (masks == decisions.legal[head][: len(samples)]).all()
        labels = [sample["labels"][head] for sample in samples]
        assert labels == decisions.choices[head].labels_N[: len(samples)].tolist()


def test_the_two_players_of_a_match_are_one_group(games):
    assert [game[0]["match"] for game in games] == [f"match-0000{number}" for number in (0, 0, 1, 1, 2, 2)]
