"""Which rows go to which file. Rows are cut in order, so the layout never changes what a row holds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from penstock.config.errors import ConfigError

DEFAULT_SPLITS: Mapping[str, float] = {"train": 0.9, "test": 0.1}


@dataclass(frozen=True, slots=True)
class FilePlan:
    """One file to write: a name under the output directory, and rows from start up to stop."""

    split: str
    name: str
    start: int
    stop: int


def cut_evenly(start: int, stop: int, num_parts: int) -> list[tuple[int, int]]:
    """Consecutive ranges whose sizes differ by at most one, the larger ones first.

    >>> cut_evenly(0, 10, 3)
    [(0, 4), (4, 7), (7, 10)]
    """
    size, larger = divmod(stop - start, num_parts)
    bounds = [start + part * size + min(part, larger) for part in range(num_parts + 1)]
    return list(pairwise(bounds))


def split_rows(num_rows: int, splits: Mapping[str, float]) -> dict[str, tuple[int, int]]:
    """The range of rows of each split, in the order given.

    >>> split_rows(10, {"train": 0.8, "test": 0.2})
    {'train': (0, 8), 'test': (8, 10)}
    """
    _check_splits(splits)
    total = sum(splits.values())
    ranges, start, share = {}, 0, 0.0
    for name, fraction in splits.items():
        share += fraction
        stop = round(num_rows * share / total)
        if stop == start:
            raise ConfigError(
                f"{num_rows} rows leave split '{name}' ({fraction:g} of them) empty; ask for more rows"
            )
        ranges[name] = (start, stop)
        start = stop
    return ranges


def _check_splits(splits: Mapping[str, float]) -> None:
    if not splits or min(splits.values()) <= 0.0 or abs(sum(splits.values()) - 1.0) > 1e-6:
        raise ConfigError(f"splits are {dict(splits)}; they must be positive fractions that add up to 1")
    for name in splits:
        if name in ("", ".", "..") or "/" in name:
            raise ConfigError(f"split '{name}' is not the name of a folder")


def plan_files(ranges: Mapping[str, tuple[int, int]], num_files: int, extension: str) -> Iterator[FilePlan]:
    """Each split in its own folder, in `num_files` files, or one per row where there are fewer rows."""
    for split, (start, stop) in ranges.items():
        parts = cut_evenly(start, stop, min(num_files, stop - start))
        for number, (part_start, part_stop) in enumerate(parts):
            yield FilePlan(split, f"{split}/part-{number:05d}.{extension}", part_start, part_stop)
