"""Metrics and counts, as a person reads them."""

import math
from collections.abc import Mapping


def numbers(values: Mapping[str, float], remarks: Mapping[str, str] | None = None) -> str:
    """Names and values on one line; behind a value what there is to say about it."""
    told = {name: f" ({remark})" for name, remark in (remarks or {}).items()}
    return "  ".join(f"{name} {number(value)}{told.get(name, '')}" for name, value in values.items())


def number(value: float) -> str:
    """Four digits, or the word for what has no value."""
    return "undefined" if math.isnan(value) else f"{value:.4f}"


def counted(count: int, noun: str) -> str:
    """1 file, 2 files."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
