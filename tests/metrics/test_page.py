"""docs/metrics.md shows what really happens."""

import inspect
import re
from pathlib import Path

import pytest

import penstock
from benchmarks.measuring import decay_chart
from benchmarks.measuring.shifting_run import watch
from penstock.metrics import METRICS

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_every_metric_has_a_row():
    rows = re.findall(r"^\| `(\w+)` \|.*\| `[a-z].*` \|$", PAGE.read_text(), re.MULTILINE)

    assert sorted(rows) == sorted(METRICS)


def test_every_class_has_a_row_with_its_arguments():
    rows = re.findall(r"^\| (`[A-Z].*?) \| (.*)\|$", PAGE.read_text(), re.MULTILINE)
    shown = {name: given for names, given in rows for name in re.findall(r"`(\w+)`", names)}
    metrics = {
        name for name in penstock.metrics.__all__ if hasattr(getattr(penstock.metrics, name), "compute")
    }

    assert shown.keys() == metrics - {"Metric", "TrainMetricWrapper"}
    for name, given in shown.items():
        arguments = set(re.findall(r"`(\w+)=", given)) - ({"weight"} if name == "GroupedXAUC" else set())
        assert arguments == inspect.signature(getattr(penstock.metrics, name)).parameters.keys() - {
            *("sample_ratio", "max_pairs", "max_pairs_per_group")
        }


def test_the_programs_print_what_they_say(capsys):
    names: dict[str, object] = {}
    for program in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(program, names)
        assert capsys.readouterr().out.strip() == program.rpartition("# ")[2].strip()


def curves(picture):
    """The points of each curve of a chart, in its pixels: less is higher."""
    lines = re.findall(r'<polyline [^>]*points="([^"]*)"', picture)
    return [[tuple(map(float, point.split(","))) for point in line.split()] for line in lines]


def test_the_chart_has_a_curve_of_each_setting():
    drawn = curves(decay_chart.PICTURE.read_text())

    assert f"({decay_chart.PICTURE.relative_to(PAGE.parent)})" in PAGE.read_text()
    assert [len(points) for points in drawn] == [200] * len(decay_chart.SETTINGS)


@pytest.mark.slow
def test_the_chart_shows_what_a_training_gives(tmp_path):
    trained = curves(decay_chart.draw(watch(tmp_path, decay_chart.SETTINGS)))

    for drawn, found in zip(curves(decay_chart.PICTURE.read_text()), trained, strict=True):
        assert [y for _, y in found] == pytest.approx([y for _, y in drawn], abs=0.5)
