"""What a run that goes on has set otherwise than it had before."""

from collections.abc import Mapping
from typing import Any

from penstock.pipeline.config_difference import Difference, differences
from penstock.pipeline.numbers import counted

MOST_NAMED = 5
"""More are counted only: the line is read on a terminal."""
INPUTS = frozenset({"train_input_path", "eval_input_path"})
"""Other files are what new data are."""
OF_THE_START = frozenset({"train_config.fine_tune_checkpoint", "train_config.fine_tune_ckpt_param_map"})
"""What a run began with, which decides nothing when it goes on."""


def changed_settings(before: Mapping[str, Any], now: Mapping[str, Any], new_data: bool = False) -> str | None:
    """How many keys of two run files differ, and which, with both values.

    None where nothing differs, and where nothing is known of `before`.
    """
    passed_over = OF_THE_START | INPUTS if new_data else OF_THE_START
    found = [each for each in differences([before, now]) if each.key not in passed_over] if before else []
    if not found:
        return None
    named, num_more = ", ".join(map(_told, found[:MOST_NAMED])), len(found) - MOST_NAMED
    more = f" and {num_more:,} more" if num_more > 0 else ""
    return f"{counted(len(found), 'changed setting')}: {named}{more}"


def _told(difference: Difference) -> str:
    before, now = ("not set" if value is None else value for value in difference.values)
    return f"{difference.key} {before} -> {now}"
