"""Draws docs/images/decay.svg: the AUC of one training, with three settings of how it fades.

    python -m benchmarks.measuring.decay_chart

The training is real (`shifting_run`) and takes some ten seconds; the same rows and seed give the same picture.
"""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.measuring.shifting_run import Points, Setting, watch
from penstock.observe.report.charts import HEIGHT, LEFT, RIGHT, WIDTH, Series, line_chart

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "decay.svg"
SETTINGS: tuple[Setting, ...] = ((0.9, 100), (0.5, 100), (0.9, 10))
"""Decay rate and steps of a window."""

LEGEND_HEIGHT = 24.0
COLORS = ("#2563c9", "#d2571e", "#16855b")
STYLE = (
    "text { font: 11.5px sans-serif; fill: #657184 } .grid { stroke: #e3e7ed } .axis { stroke: #aab4c2 } "
    ".series { fill: none; stroke-width: 1.8; stroke-linejoin: round } "
) + " ".join(f".color-{number} {{ stroke: {color} }}" for number, color in enumerate(COLORS))


def draw(curves: Mapping[Setting, Points]) -> str:
    """The chart as one file, with its legend and colours inside."""
    series = [
        Series(f"{rate}, {steps}", points, color=number)
        for number, ((rate, steps), points) in enumerate(curves.items())
    ]
    chart = line_chart("Decay", "auc", series)
    assert chart is not None
    base, middle = HEIGHT - 44, (LEFT + WIDTH - RIGHT) / 2
    legend = [f'<text x="{LEFT}" y="19">decay_rate, decay_step:</text>']
    lines = [(curve["name"], curve["look"], curve["corners"]) for curve in chart["curves"]]
    for number, (name, look, _) in enumerate(lines):
        x = LEFT + 150 + number * 90
        legend.append(f'<line class="series {look}" x1="{x}" x2="{x + 14}" y1="15" y2="15"/>')
        legend.append(f'<text x="{x + 18}" y="19">{name}</text>')
    plot = [f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{base}" y2="{base}"/>']
    for y, label in chart["y_ticks"]:
        plot.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>')
        plot.append(f'<text x="{LEFT - 7}" y="{y + 4}" text-anchor="end">{label}</text>')
    plot += [
        f'<text x="{x}" y="{base + 17}" text-anchor="middle">{label}</text>' for x, label in chart["x_ticks"]
    ]
    plot.append(f'<text x="{middle}" y="{HEIGHT - 8}" text-anchor="middle">step</text>')
    plot.append('<text text-anchor="middle" transform="translate(13 129) rotate(-90)">auc</text>')
    plot += [f'<polyline class="series {look}" points="{corners}"/>' for _, look, corners in lines]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + RIGHT:.0f} {HEIGHT + LEGEND_HEIGHT:.0f}" '
        f'width="{WIDTH + RIGHT:.0f}" role="img" aria-label="The auc of one training with three settings of decay">'
        f'<style>{STYLE}</style><rect width="100%" height="100%" fill="#ffffff"/>{"".join(legend)}'
        f'<g transform="translate(0 {LEGEND_HEIGHT:.0f})">{"".join(plot)}</g></svg>'
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PICTURE.write_text(draw(watch(Path(folder), SETTINGS)) + "\n", encoding="utf-8")
