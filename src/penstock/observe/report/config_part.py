"""The run file of a run, and where it differs from another."""

from collections.abc import Sequence

from penstock.config.difference import differences
from penstock.observe.report.markup import Markup, element
from penstock.observe.report.previous_run import model_name
from penstock.observe.report.run_record import RunRecord
from penstock.observe.report.tables import draw_table, folded


def difference_table(runs: Sequence[RunRecord]) -> Markup:
    """The keys in which runs differ, a column for each run."""
    found = differences([run.config for run in runs])
    if not found:
        return element("p", "The run files say the same.", class_="quiet")
    rows = [
        [difference.key, *("not set" if value is None else value for value in difference.values)]
        for difference in found
    ]
    return draw_table(["key", *(run.name for run in runs)], rows, "config")


def no_previous_run(run: RunRecord) -> Markup:
    """Why nothing is compared."""
    model = model_name(run.config) or "this model"
    text = f"No earlier run of {model} on the same train_input_path lies in a folder beside this one."
    return element("p", text, class_="quiet")


def config_text(run: RunRecord) -> Markup | None:
    """The whole run file."""
    if not run.config_text:
        return None
    return folded(f"run.yaml of {run.name}", element("pre", run.config_text))


def version_text(run: RunRecord) -> Markup | None:
    """Which packages made the run."""
    packages = run.version.get("packages")
    if not packages:
        return None
    return folded(
        f"versions of {run.name}",
        draw_table(["package", "version"], [[name, str(version)] for name, version in packages.items()]),
    )
