"""The `game` kind: writes replay files and counts how often the best choice is the one that was made."""

from collections.abc import Callable
from pathlib import Path

from penstock.prep.sample_data.attainable import AttainableAccuracy
from penstock.prep.sample_data.game.decisions import Players
from penstock.prep.sample_data.game.lengths import game_lengths
from penstock.prep.sample_data.game.replays import decision_lines, header_line
from penstock.prep.sample_data.game.rules import HEADS
from penstock.prep.sample_data.summary import LabelSummary, SplitSummary


class Game:
    """Replays of matches between two players; each decision has seven choices."""

    planted = (
        "each of the 7 choices is drawn among the legal ones from a softmax whose logits are linear in 815 of the "
        "893 features (all but the past actions), through 12 weighted sums of them"
    )
    format = "jsonl"
    folder = "replays"

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._players = Players(seed)

    def write(
        self, directory: Path, num_rows: int, num_files: int | None, on_rows: Callable[[int], None]
    ) -> SplitSummary:
        """One file for each player of each match, with `num_rows` decisions together."""
        accuracies = {head: AttainableAccuracy(width) for head, width in HEADS.items()}
        (directory / self.folder).mkdir()
        names = []
        for game, num_decisions in enumerate(game_lengths(self._seed, num_rows, num_files)):
            names.append(f"{self.folder}/game-{game:05d}.jsonl")
            self._write_game(directory / names[-1], game, num_decisions, accuracies)
            on_rows(num_decisions)
        labels = {
            head: LabelSummary(accuracy.largest_share(), attainable_accuracy=accuracy.compute())
            for head, accuracy in accuracies.items()
        }
        return SplitSummary(tuple(names), num_rows, labels)

    def _write_game(
        self, path: Path, game: int, num_decisions: int, accuracies: dict[str, AttainableAccuracy]
    ) -> None:
        with path.open("wb") as file:
            file.write(header_line(game, num_decisions))
            num_left = num_decisions
            for decisions in self._players.decisions(game):
                num_taken = min(num_left, len(decisions.past_NP))
                file.writelines(decision_lines(decisions, num_taken))
                for head, choice in decisions.choices.items():
                    accuracies[head].update(choice.probabilities_NK[:num_taken], choice.labels_N[:num_taken])
                num_left -= num_taken
                if not num_left:
                    break
