"""Many batch files become one store, in a few megabytes whatever their number.

`merging` tells the whole story; each step is a file or a folder:

    pass 1   source (what the headers say), places (which sample goes to which split, and in which order),
             layouts (where bytes lie in files, for each target): all of it is a `plan`
    staging  the folder where the store grows, out of sight; room on the disk
    pass 2   moving: tasks, done by a crew of threads or workers, noted in a journal when they are on disk
               copying                           bytes to their places
               buckets, scattering, gathering    the same in random order
               part_writing                      Parquet and Arrow files, which have no places
    the end  headers, document (manifest.json), and all is moved to where it belongs

`checking` verifies it later. `replacing` looks at the store that is there before.
"""

from penstock.store.merge.checking.verifying import verify
from penstock.store.merge.merging import MergeResult, merge
from penstock.store.merge.options import MergeOptions, SplitShares
from penstock.store.merge.plan import MergePlan, plan_merge

__all__ = ["MergeOptions", "MergePlan", "MergeResult", "SplitShares", "merge", "plan_merge", "verify"]
