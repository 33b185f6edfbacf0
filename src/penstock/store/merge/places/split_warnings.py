"""Splits that are not what was asked for, since samples that stay together are too few to divide."""

from collections.abc import Iterator

from penstock.store.manifest import MANIFEST_NAME
from penstock.store.merge.plan import MergePlan

_FAR = 0.05
"""Of all samples: a split that has so many more or fewer than its share is told."""


def split_warnings(plan: MergePlan) -> Iterator[str]:
    """One line for each split without samples, and one where shares are far from those that were asked for.

    And one where nobody knows which samples are of the same file, or where their groups are used for nothing.
    """
    splits, total = plan.options.splits, plan.batches.total_samples
    groups = plan.batches.schema.names.groups
    if groups in plan.batches.schema and (splits is None or splits.by != "group"):
        yield f"array '{groups}' is left out: it only tells splits by group which samples stay together"
    if splits is None or not total:
        return
    if splits.by == "file" and not plan.knows_inputs:
        yield f"splits by file: no {MANIFEST_NAME} tells which input files samples are of: each batch file is one"
    counts = plan.split_counts
    reasons = {
        "sample": f"its share of {total:,} samples is less than one",
        "group": "no group came to it; give more groups, or split by sample",
        "file": f"there are too few input files ({len(plan.source_samples):,}); give more, or split by sample",
    }
    for name, count in counts.items():
        if not count:
            yield f"split {name} is empty: {reasons[splits.by]}"
    if any(abs(counts[name] - share * total) > _FAR * total for name, share in splits.shares.items()):
        found = ", ".join(f"{name} {count / total:.2f}" for name, count in counts.items())
        wanted = ", ".join(f"{share:g}" for share in splits.shares.values())
        yield f"shares by {splits.by} are {found}, not {wanted}: too few {splits.by}s to come nearer"
