"""Alternating repeats: the machine's mood changes by the minute, and must not favour one way over another."""

import statistics
import time
from collections.abc import Callable, Mapping


def alternate(
    ways: Mapping[str, Callable[[], int]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> dict[str, list[float]]:
    """Rows per second of each way, round after round; the first round, which warms caches, is not counted."""
    rates: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items():
            started_at = clock()
            num_rows = way()
            seconds = clock() - started_at
            if number:
                rates[name].append(num_rows / seconds)
    return rates


def median_ratio(rates: Mapping[str, list[float]], way: str, against: str) -> float:
    """The middle one of the ratios of single rounds."""
    return statistics.median(ratios(rates, way, against))


def ratios(rates: Mapping[str, list[float]], way: str, against: str) -> list[float]:
    """One ratio for each round: what ran at about the same time."""
    return [one / other for one, other in zip(rates[way], rates[against], strict=True)]


def report(rates: Mapping[str, list[float]], way: str, against: str, bar: float) -> bool:
    """Print a line; whether the bar is reached."""
    found = ratios(rates, way, against)
    ratio = statistics.median(found)
    passed = ratio >= bar
    rate = statistics.median(rates[way])
    print(
        f"{way:<28} {rate / 1e6:6.2f} million rows/s  {ratio:5.2f} of {against} "
        f"({min(found):.2f} to {max(found):.2f} in {len(found)} rounds; bar {bar:.2f})"
        f"{'' if passed else '  BELOW THE BAR'}",
        flush=True,
    )
    return passed
