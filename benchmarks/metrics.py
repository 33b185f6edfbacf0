"""How fast metrics are, and how near to exact.

    python benchmarks/metrics.py [--rounds 5] [--rows 10000000] [--only update|value|grouped|pairs]

| claim | against | bar |
|---|---|---|
| AUC update of 8,192 predictions | torchmetrics' BinaryAUROC with 200 thresholds | 100 times as fast |
| AUC of a million rows, base rates .2 and .01 | scikit-learn's exact area | within 1e-4 |
| GroupedAUC, 10 million rows in a million groups | a loop over groups, written for speed | 20 times as fast |
| the same | a loop over groups that calls scikit-learn | 20 times as fast |
| the same | memory of the process beyond its start | 1 GiB |
| XAUC of 100,000 rows | drawing one pair in 1,000 with NumPy | 3 times as fast |
| XAUC, exact, of 10 million rows | rows per second of a million | 0.5 of it |
| GroupedXAUC, 10 million rows in a million groups | GroupedAUC of them | 0.5 of it |

Ways take turns, round after round, and the middle ratio counts. Loops run on a small part of the groups.

Updates take turns in many short rounds of one thread, by the time that it computes. BinaryAUROC makes 50 MiB of
temporary arrays in each update; the C library gives their pages back to the system afterwards, or keeps them, as its
heap happens to lie, and that alone changes the rate by five. So it is held to the size from which it maps an array by
itself at first, 128 KiB; a second line, without a bar, shows both ways with all pages kept.
"""

import argparse
import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import torch
from measuring import grouped_rows
from measuring.rounds import alternate, report
from sklearn.metrics import roc_auc_score
from torchmetrics.classification import BinaryAUROC

from penstock.config.sizes import GIB, KIB, MIB, format_size
from penstock.metrics import AUC, XAUC, GroupedAUC, GroupedXAUC

BATCH_ROWS = 8192
VALUE_ROWS = 1_000_000
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of mallopt, in malloc.h."""
DRAWN_ROWS = 100_000
LOOP_SHARE, CALLS_SHARE = 50, 5000
"""Loops over groups are so slow that they are measured on these parts of the rows."""


def main() -> int:
    """Measure, print a line for each claim, and fail below a bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--only", choices=["update", "value", "grouped", "pairs"])
    options = parser.parse_args()
    claims = {"update": update, "value": value, "grouped": grouped, "pairs": pairs}
    chosen = [options.only] if options.only else list(claims)
    passed = [claims[name](options) for name in chosen]
    return 0 if all(passed) else 1


def update(options: argparse.Namespace) -> bool:
    """In a process of its own, whose allocator and threads are changed."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(compare_updates, 5 * options.rounds).result()


def compare_updates(rounds: int) -> bool:
    """Both get the same tensors and keep what they need for the value."""
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    preds = torch.rand(BATCH_ROWS, generator=generator)
    target = (torch.rand(BATCH_ROWS, generator=generator) < preds).long()
    ours, theirs = AUC(), BinaryAUROC(thresholds=200)
    passed = []
    for name, mapped_from, bar in (
        ("AUC update", 128 * KIB, 100.0),
        ("AUC update, pages kept", 32 * MIB, 0.0),
    ):
        set_mapped_from(mapped_from)
        ways = {
            "BinaryAUROC": repeated(lambda: theirs.update(preds, target), 4),
            name: repeated(lambda: ours.update(preds, target), 400),
        }
        passed.append(report(alternate(ways, rounds, time.thread_time), name, "BinaryAUROC", bar))
    return all(passed)


def set_mapped_from(size_bytes: int) -> None:
    """Let glibc map arrays of this size by themselves, to be given back when they are freed; all else stays its own."""
    mallopt = ctypes.CDLL(None).mallopt
    if not (mallopt(M_MMAP_THRESHOLD, size_bytes) and mallopt(M_TRIM_THRESHOLD, GIB)):
        raise SystemExit("the thresholds of malloc cannot be set; is this another C library than glibc?")


def repeated(call: Callable[[], object], times: int) -> Callable[[], int]:
    """So many calls as one way; gives the rows it took."""

    def run() -> int:
        for _ in range(times):
            call()
        return times * BATCH_ROWS

    return run


def value(_: argparse.Namespace) -> bool:
    """Predictions as a model gives them: float32, most of them small."""
    errors = []
    for base_rate in (0.2, 0.01):
        generator = np.random.default_rng(0)
        preds = generator.beta(1, 1 / base_rate - 1, VALUE_ROWS).astype(np.float32)
        target = generator.random(VALUE_ROWS) < preds
        metric = AUC()
        metric.update(preds, target)
        found, exact = metric.compute(), roc_auc_score(target, preds)
        errors.append(abs(found - exact))
        print(
            f"AUC at base rate {target.mean():.3f}: {found:.7f}, exact {exact:.7f}, off by {errors[-1]:.1e} (bar 1e-4)"
        )
    return max(errors) <= 1e-4


def grouped(options: argparse.Namespace) -> bool:
    """Time with all rows at hand, memory in a process that sees one batch at a time."""
    whole = grouped_rows.generate(options.rows, seed=0)
    some = grouped_rows.generate(options.rows // LOOP_SHARE, seed=1)
    few = grouped_rows.generate(options.rows // CALLS_SHARE, seed=2)
    for rows in (some, few):
        np.testing.assert_allclose(
            grouped_rows.grouped_auc(rows), grouped_rows.loop_over_groups(rows), rtol=1e-12
        )
    rates = alternate(
        {
            "loop, a call for each": lambda: taken(loop_of_calls, few),
            "loop, for speed": lambda: taken(grouped_rows.loop_over_groups, some),
            "GroupedAUC": lambda: taken(grouped_rows.grouped_auc, whole),
        },
        options.rounds,
    )
    passed = [
        report(rates, "GroupedAUC", loop, 20.0) for loop in ("loop, for speed", "loop, a call for each")
    ]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        peak = pool.submit(grouped_rows.peak_bytes_beyond_start, options.rows).result()
    seconds = options.rows / statistics.median(rates["GroupedAUC"])
    memory = f"{format_size(peak)} beyond the start (bar {format_size(GIB)})"
    print(f"GroupedAUC of {options.rows:,} rows: {seconds:.1f} s, {memory}")
    return all(passed) and peak <= GIB


def pairs(options: argparse.Namespace) -> bool:
    """Batches and the value; what is drawn has all rows at hand."""
    rows = grouped_rows.generate(options.rows, seed=0)
    watched = rows.preds + np.random.default_rng(1).normal(0, 0.3, options.rows).astype(np.float32)

    def share(metric: XAUC, num_rows: int) -> int:
        for start in range(0, num_rows, BATCH_ROWS):
            batch = slice(start, min(start + BATCH_ROWS, num_rows))
            metric.update(rows.preds[batch], watched[batch])
        metric.compute()
        return num_rows

    def grouped_share(metric: GroupedAUC | GroupedXAUC) -> int:
        target = rows.target if isinstance(metric, GroupedAUC) else watched
        for start in range(0, options.rows, BATCH_ROWS):
            batch = slice(start, start + BATCH_ROWS)
            metric.update(rows.preds[batch], target[batch], rows.groups[batch])
        metric.compute()
        return options.rows

    def drawn(num_rows: int) -> int:
        generator, num_pairs = np.random.default_rng(0), num_rows * (num_rows - 1) // 2
        i, j = generator.integers(0, num_rows, (2, num_pairs // 1000))
        np.mean((rows.preds[i] - rows.preds[j]) * (watched[i] - watched[j]) > 0)
        return num_rows

    passed = []
    for way, against, bar, ways in (
        ("XAUC", "drawing", 3.0, (lambda: share(XAUC(), DRAWN_ROWS), lambda: drawn(DRAWN_ROWS))),
        (
            f"XAUC of {options.rows:,}",
            "a tenth of them",
            0.5,
            (
                lambda: share(XAUC(exact=True), options.rows),
                lambda: share(XAUC(exact=True), options.rows // 10),
            ),
        ),
        (
            "GroupedXAUC",
            "GroupedAUC",
            0.5,
            (lambda: grouped_share(GroupedXAUC()), lambda: grouped_share(GroupedAUC())),
        ),
    ):
        rates = alternate(dict(zip((way, against), ways, strict=True)), options.rounds)
        passed.append(report(rates, way, against, bar))
    return all(passed)


def taken(way: Callable[[grouped_rows.Rows], float], rows: grouped_rows.Rows) -> int:
    """Run it; how many rows it took."""
    way(rows)
    return len(rows.preds)


def loop_of_calls(rows: grouped_rows.Rows) -> float:
    """The loop as one writes it: scikit-learn for every group with both classes."""
    areas = [
        roc_auc_score(target, preds)
        for preds, target in grouped_rows.split_by_group(rows)
        if target.any() and not target.all()
    ]
    return float(np.mean(areas))


if __name__ == "__main__":
    sys.exit(main())
