"""A metric, a loss, a schedule and an optimizer of one's own, as docs/custom.md shows them."""

import json
import re
import sys
from pathlib import Path

import pytest

from penstock.optim.schedules import preview_schedule
from penstock.prep.sample_data.write import write_sample_data
from tests.cli.conftest import desk
from tests.cli.desk import Desk

__all__ = ["desk"]

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "custom"
PAGE = (ROOT / "docs" / "custom.md").read_text()

PARTS = (
    ("[{binary_cross_entropy: {}}]", '[{custom_loss: {import_path: "own_parts:weighted_cross_entropy"}}]'),
    ("{auc: {}}", '{custom_metric: {import_path: "own_parts:Brier", name: brier}}'),
    (
        "dense_optimizer: {adam_optimizer: {lr: 0.1}}",
        'dense_optimizer: {custom_optimizer: {import_path: "own_parts:SignDescent", lr: 0.1}}',
    ),
)


@pytest.fixture(autouse=True)
def own_parts_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))


def test_the_example_trains_with_all_four(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_sample_data("clicks", 20_000, tmp_path / "data/custom")

    done = Desk(tmp_path).penstock("train", str(EXAMPLE / "run.yaml"), "--memory", "8GiB")

    assert done.exit_code == 0, done.stderr
    result = json.loads((tmp_path / "runs/custom/eval_result.jsonl").read_text())
    log = [json.loads(line) for line in (tmp_path / "runs/custom/log.jsonl").read_text().splitlines()]
    rates = [line["learning_rate"]["dense"] for line in log if "learning_rate" in line]
    assert list(result["metrics"]) == ["auc", "brier", "cubed"]
    assert list(result["losses"]) == ["weighted_cross_entropy"]
    assert result["metrics"]["auc"] > 0.65
    assert 0 < result["metrics"]["cubed"] < result["metrics"]["brier"] < 0.25
    assert log[1]["train_metrics"]["brier"] < 0.25
    assert rates[1] == pytest.approx(0.001 * (10 / 20) ** 0.5)


def test_a_run_with_parts_of_its_own_is_continued(desk):
    desk.write_run(*PARTS)
    first = desk.penstock("train", "run.yaml")
    again = desk.penstock("train", "run.yaml", "--continue_train", "--set", "train_config.num_epochs=2")

    assert (first.exit_code, again.exit_code) == (0, 0), first.stderr + again.stderr
    steps = [
        json.loads(line)["step"] for line in (desk.folder / "run/eval_result.jsonl").read_text().splitlines()
    ]
    assert steps == [2, 4]


def test_what_the_page_shows_is_the_example():
    sources = "".join(path.read_text() for path in EXAMPLE.iterdir() if path.is_file())
    blocks = re.findall(r"```(?:python|yaml)\n(.*?)```", PAGE, re.DOTALL)

    assert len(blocks) >= 8
    for block in blocks:
        assert all(line.strip() in sources for line in block.splitlines()), block


def test_a_schedule_of_ones_own_can_be_looked_at_before():
    section = {
        "custom_learning_rate": {
            "import_path": "own_parts:inverse_square_root",
            "options": {"warmup_steps": 2},
        }
    }

    assert preview_schedule(section, lr=0.8, steps=8)[::2] == pytest.approx(
        [0.4, 0.8, 0.8 * 0.5**0.5, 0.8 * 3**-0.5, 0.4]
    )


def test_an_installed_package_gives_names_by_entry_points(desk, monkeypatch):
    package = desk.folder / "site" / "own_parts-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: own-parts\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[penstock.metrics]\nbrier = own_parts:Brier\n")
    monkeypatch.syspath_prepend(str(package.parent))
    desk.write_run(("{auc: {}}", "{custom_metric: {import_path: brier}}"))

    done = desk.penstock("train", "run.yaml")

    assert done.exit_code == 0, done.stderr
    assert "brier 0." in done.stdout + done.stderr


AUC, ADAM = "{auc: {}}", "adam_optimizer: {lr: 0.1}"
METRIC = "model_config.metrics[0].custom_metric: "


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        (
            AUC,
            '{custom_metric: {import_path: "own_parts:Brier", options: {powr: 2}}}',
            (
                f"{METRIC}custom_metric 'own_parts:Brier': cannot be made with its options: "
                "Brier.__init__() got an unexpected keyword argument 'powr'"
            ),
        ),
        (
            AUC,
            '{custom_metric: {import_path: "own_parts:Brier", reads: y}}',
            f"{METRIC}'custom_metric' needs the prediction y; this model gives logits, probs",
        ),
        (
            AUC,
            '{custom_metric: {import_path: "builtins:dict"}}',
            (
                f"{METRIC}custom_metric 'builtins:dict': has no merge, compute, reset, state_dict, load_state_dict, "
                "undefined_because, num_left_out; penstock.metrics.sums.RowMean has all but the number of a row"
            ),
        ),
        (
            ADAM,
            "custom_optimizer: {import_path: nadam}",
            (
                "train_config.dense_optimizer.custom_optimizer: custom_optimizer 'nadam': is no entry point of the "
                'group penstock.optimizers (there: none); write it as "package.module:attribute"'
            ),
        ),
        (
            ADAM,
            'adam_optimizer: {lr: 0.1}, custom_learning_rate: {import_path: "math:pi"}',
            (
                "custom_learning_rate 'math:pi': is 3.141592653589793; "
                "name a class or function that makes the learning_rate"
            ),
        ),
    ],
)
def test_wrong_parts_are_told_in_one_line(desk, old, new, line):
    desk.write_run((old, new))

    done = desk.penstock("train", "run.yaml")

    assert done.stderr.endswith(f"{line}\n"), done.stderr
    assert done.exit_code == 1


def test_a_loss_that_is_not_one_number_for_each_row_is_told(desk, monkeypatch):
    (desk.folder / "mean_loss.py").write_text(
        "def make():\n    return lambda logits, labels: (logits - labels).square().mean()\n"
    )
    monkeypatch.syspath_prepend(str(desk.folder))
    desk.write_run(
        ("{binary_cross_entropy: {}}", '{custom_loss: {import_path: "mean_loss:make", name: mean}}')
    )

    done = desk.penstock("train", "run.yaml")

    assert "custom_loss 'mean_loss:make': gives shape () for 4 rows; give one loss for each" in done.stderr
    assert done.exit_code == 1


METRICS_WITH_A_TYPO = """\
from own_parts import Brier

class Update(Brier):
    def update(self, preds, target):
        super().update(pred, target)

class Compute(Brier):
    def compute(self):
        return self.totl

class State(Brier):
    def state_dict(self):
        return {"total": self.totl}
"""


@pytest.mark.parametrize(
    ("command", "name", "problem", "metrics"),
    [
        ("check", "Compute", "AttributeError: 'Compute' object has no attribute 'totl'", "metrics"),
        ("check", "Update", "NameError: name 'pred' is not defined", "train_metrics"),
    ],
)
def test_a_typo_in_a_metric_is_told_by_check_as_by_train(desk, monkeypatch, command, name, problem, metrics):
    (desk.folder / "typo.py").write_text(METRICS_WITH_A_TYPO)
    monkeypatch.syspath_prepend(str(desk.folder))
    monkeypatch.delitem(sys.modules, "typo", raising=False)
    desk.write_run(
        (
            "  metrics: [{auc: {}}]\n",
            f'  {metrics}: [{{custom_metric: {{import_path: "typo:{name}", name: typo}}}}]\n',
        ),
        ("  num_epochs: 1\n", "  num_epochs: 1\n  log_step_count_steps: 1\n"),
    )

    done = desk.penstock(command, "run.yaml")

    assert done.stderr.splitlines()[-1] == f"error: custom_metric 'typo:{name}': fails: {problem}"
    assert done.exit_code == 1
