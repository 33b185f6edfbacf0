"""The command `report`, as a function."""

import logging
from collections.abc import Sequence
from pathlib import Path

from penstock.config.errors import ConfigError
from penstock.observe.report.page import page_of
from penstock.observe.report.previous_run import previous_run
from penstock.observe.report.run_record import read_runs

REPORT = "report.html"
COMPARISON = "comparison.html"
"""Of several runs: beside the page that the first one has of its own."""
_logger = logging.getLogger(__name__)


def write_report(model_dir: Path, others: Sequence[Path] = (), output: Path | None = None) -> Path:
    """Write the page of a run, or of several beside each other; gives its path, in the first by default."""
    if output is not None:
        _require_place_for(output)
    runs = read_runs([model_dir, *others])
    page = page_of(runs, previous_run(runs[0]) if len(runs) == 1 else None)
    path = output if output is not None else model_dir / (REPORT if len(runs) == 1 else COMPARISON)
    path.write_text(page, encoding="utf-8")
    return path


def _require_place_for(output: Path) -> None:
    if not output.parent.is_dir():
        raise ConfigError(f"--output: there is no folder '{output.parent}'; make it first")
    if output.is_dir():
        raise ConfigError(f"--output: '{output}' is a folder; name a file in it")


def try_to_write_report(model_dir: Path) -> Path | None:
    """The page of a run that has just ended; a run that is trained and saved never fails for it."""
    try:
        return write_report(model_dir)
    except Exception as error:
        _logger.warning("report.html was not written: %s (penstock report %s tries again)", error, model_dir)
        return None
