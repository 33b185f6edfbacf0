"""What is to be said of a run as a whole: how it ended, and what its records cannot show."""

from penstock.observe.report.markup import Markup, element
from penstock.observe.report.run_record import RunRecord


def outcome(run: RunRecord) -> Markup | None:
    """Whether it stopped early and why, and which step's parameters it ended with; None where neither is to say."""
    if run.stopped_because:
        head, rest = f"{run.name} stopped early at step {run.num_steps:,}: ", [f"{run.stopped_because}."]
    elif run.restored_step is not None:
        head, rest = f"{run.name} ran to its end at step {run.num_steps:,}.", []
    else:
        return None
    if run.restored_step is not None:
        rest.append(
            f" It went back to step {run.restored_step:,}, the best one, which eval and predict take: final metrics, "
            "calibration and groups on this page are of that step."
        )
    return element("p", element("b", head), *rest, class_="outcome")


def too_short_for_curves(run: RunRecord) -> Markup | None:
    """Why a run that has ended shows nothing of its training: it was over before the first line of the log."""
    if not run.end or run.steps:
        return None
    return element(
        "p",
        f"{run.name} has no curves of training: it ended at step {run.num_steps:,}, before the first line of its log "
        "was due; a smaller train_config.log_step_count_steps gives some.",
        class_="quiet",
    )
