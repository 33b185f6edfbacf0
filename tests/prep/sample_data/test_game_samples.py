"""The extract function of the example, run on generated replays."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from penstock.prep.sample_data.game import HEADS, Game
from penstock.prep.sample_data.write import write_sample_data

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
    """The samples of each of 6 games."""
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


def test_the_planted_signal_is_there(games):
    """A linear model, fitted on 2,000 decisions by least squares, guesses the others far better than by frequency."""
    samples = [sample for game in games for sample in game]
    np.random.default_rng(0).shuffle(samples)
    features = np.stack([sample["features"] for sample in samples]).astype(np.float64)
    features -= features.mean(axis=0)
    known, unknown = features[:2_000], features[2_000:]
    inverse = np.linalg.solve(known.T @ known + 200.0 * np.eye(features.shape[1]), known.T)
    for head, width in HEADS.items():
        labels = np.array([sample["labels"][head] for sample in samples])
        legal = np.stack([sample["masks"][head] for sample in samples[2_000:]])
        scores = unknown @ (inverse @ np.eye(width)[labels[:2_000]])
        accuracy = np.mean(np.where(legal, scores, -np.inf).argmax(axis=1) == labels[2_000:])
        by_frequency = np.mean(labels[2_000:] == np.bincount(labels[:2_000]).argmax())
        assert accuracy > by_frequency + 0.15, head
