"""Many batch files become one store, in a few megabytes whatever their number.

`merging` has the whole sequence; each step is a file:

    pass 1   batches (what the headers say), plan (which sample goes to which split, and where)
    staging  the folder where the store grows, out of sight; free bytes on the disk; the store that is there before
    layouts  which files a store has, and at which offsets the bytes of arrays lie in them
    pass 2   copy (bytes to their offsets, in order or in a random one), arrow_parts (Parquet and Arrow files, which
             have no offsets): idempotent tasks, each with a marker when it is on disk
    the end  manifest.json, and all is moved to where it belongs

`verify` compares a store with its batch files later.
"""
