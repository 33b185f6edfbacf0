"""Many batch files become one store, in a few megabytes whatever their number.

Pass 1 reads headers: `batches` knows what is where, `plan` decides where every sample goes. Pass 2 copies bytes to
their places, part by part: a journal tells which are done. The store grows out of sight and appears when it is whole.
"""

from penstock.store.merge.merging import MergeResult, merge
from penstock.store.merge.options import MergeOptions, SplitShares
from penstock.store.merge.plan import MergePlan, plan_merge
from penstock.store.merge.verifying import verify

__all__ = ["MergeOptions", "MergePlan", "MergeResult", "SplitShares", "merge", "plan_merge", "verify"]
