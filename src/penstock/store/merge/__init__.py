"""Many batch files become one store, in a few megabytes whatever their number.

`merging` tells the whole story; each step is a file, or a few:

    pass 1   batches (what the headers say), splitting and keys (which sample goes to which split, and in which order),
             npy_layout, zip_layout, hdf5_layout (where bytes lie in files): all of it is a `plan`
    staging  the folder where the store grows, out of sight; room on the disk
    pass 2   writing: tasks, done by a crew of threads or workers, noted in a journal when they are on disk
               copying                           bytes to their places
               buckets, scattering, gathering    the same in random order
               part_writing, part_files          Parquet and Arrow files, which have no places
    the end  headers, document (manifest.json), and all is moved to where it belongs

What is verified later is read by `stored`, and found by `order`.
"""

from penstock.store.merge.merging import MergeResult, merge
from penstock.store.merge.options import MergeOptions, SplitShares
from penstock.store.merge.plan import MergePlan, plan_merge
from penstock.store.merge.verifying import verify

__all__ = ["MergeOptions", "MergePlan", "MergeResult", "SplitShares", "merge", "plan_merge", "verify"]
