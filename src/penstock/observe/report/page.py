"""The whole page: parts under headings, with the style and the script inside."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from penstock.config.sizes import format_size
from penstock.observe.report.config_part import config_text, difference_table, no_previous_run, version_text
from penstock.observe.report.curves import memory_chart, quality_charts, speed_charts
from penstock.observe.report.data_part import data_table
from penstock.observe.report.evaluations_part import evaluation_table, final_table, remark_list
from penstock.observe.report.markup import Markup, element, joined
from penstock.observe.report.memory_part import limit_meter, stages_of_runs
from penstock.observe.report.outcome_part import outcome, too_short_for_curves
from penstock.observe.report.profile_part import profiles_of_runs
from penstock.observe.report.quality_part import calibration_chart, groups_of_runs
from penstock.observe.report.run_record import RunRecord

HERE = Path(__file__).parent
MOST_VALUES = 4
"""How many losses and metrics stand at the top; all are in the table of evaluations."""


def page_of(runs: Sequence[RunRecord], previous: RunRecord | None = None) -> str:
    """The page of one run, or of several beside each other; `previous` is what one run is compared with."""
    names = listed([run.name for run in runs])
    parts = [
        header(runs, names),
        *map(outcome, runs),
        *map(advice, runs),
        *sections(runs, previous),
    ]
    head = element(
        "head",
        Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", f"Penstock: {names}"),
        element("style", Markup((HERE / "page.css").read_text(encoding="utf-8"))),
    )
    script = element("script", Markup((HERE / "page.js").read_text(encoding="utf-8")))
    body = element("body", element("main", *filter(None, parts)), script)
    return "<!doctype html>\n" + element("html", head, body, lang="en") + "\n"


def header(runs: Sequence[RunRecord], names: str) -> Markup:
    """Which runs, and of a single one its figures."""
    tiles = [*final_tiles(runs[0]), *course_tiles(runs[0])] if len(runs) == 1 else []
    title = names if len(runs) == 1 else f"{len(runs)} runs: {names}"
    return element("header", element("h1", title), element("div", *tiles, class_="tiles"))


def final_tiles(run: RunRecord) -> list[Markup]:
    """The first losses and metrics of what the run ended with; of one that is undefined the reason.

    Where they are not of the last step, as after an interruption or a step back, they say of which.
    """
    step = run.final_evaluation.get("step")
    of_step = None if step in (None, run.num_steps) else f"of step {step:,}"
    reasons = run.final_evaluation.get("remarks") or {}
    return [
        tile(name, "undefined", reasons.get(name), of_step)
        if value is None
        else tile(name, f"{value:.4f}", of_step)
        for name, value in list(run.final_values().items())[:MOST_VALUES]
    ]


def course_tiles(run: RunRecord) -> list[Markup]:
    """The numbers of its course that one looks for first."""
    last, found = run.last, []
    if last.get("loss") is not None:
        found.append(tile("training loss", f"{last['loss']:.4f}"))
    found.append(tile("steps", f"{run.num_steps:,}"))
    if "rows_per_second" in last:
        found.append(tile("rows/s", f"{last['rows_per_second']:,}"))
    if "waiting_share" in last:
        found.append(tile("waiting for data", f"{last['waiting_share']:.0%}"))
    if run.memory.get("peak_bytes"):
        found.append(tile("peak memory", format_size(run.memory["peak_bytes"])))
    return found


def tile(name: str, text: str, *notes: str | None) -> Markup:
    """One figure."""
    return element("div", element("b", text), *(element("span", line) for line in (name, *notes) if line))


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    >>> listed(["monday", "tuesday", "friday"]), listed(["monday"])
    ('monday, tuesday and friday', 'monday')
    """
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def advice(run: RunRecord) -> Markup | None:
    """What the step advisor says."""
    if run.advice is None:
        return None
    return element("p", element("b", f"{run.name}: "), run.advice, class_="advice")


def sections(runs: Sequence[RunRecord], previous: RunRecord | None) -> list[Markup | None]:
    """All parts that have something to show."""
    return [
        section("Final metrics", [final_table(runs)] if len(runs) > 1 else []),
        section(
            "Quality",
            [*map(too_short_for_curves, runs), *charts([*quality_charts(runs), calibration_chart(runs)])],
        ),
        section("Groups", groups_of_runs(runs)),
        section("Evaluations", [part for run in runs for part in (evaluation_table(run), remark_list(run))]),
        section("Speed", charts(speed_charts(runs))),
        section("Memory", [*map(limit_meter, runs), *charts([memory_chart(runs), stages_of_runs(runs)])]),
        section("Data", [data_table(runs), *profiles_of_runs(runs)]),
        changes(runs, previous),
        section("Configuration", [*map(config_text, runs), *map(version_text, runs)]),
    ]


def changes(runs: Sequence[RunRecord], previous: RunRecord | None) -> Markup | None:
    """Where the run files differ: of several runs, or of one from the one before it."""
    if len(runs) > 1:
        return section("What differs in the configuration", [difference_table(runs)])
    if not runs[0].config:
        return None
    if previous is None:
        return section("What changed in the configuration", [no_previous_run(runs[0])])
    return section(f"Configuration since {previous.name}", [difference_table([previous, *runs])])


def section(title: str, parts: Iterable[Markup | None]) -> Markup | None:
    """A heading with what stands below it; None where nothing does."""
    shown = [part for part in parts if part]
    return element("section", element("h2", title), *shown) if shown else None


def charts(found: Iterable[Markup | None]) -> list[Markup]:
    """Charts beside each other, as many as the page is wide."""
    shown = [chart for chart in found if chart]
    return [element("div", joined(shown), class_="charts")] if shown else []
