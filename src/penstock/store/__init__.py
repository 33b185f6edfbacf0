"""Arrays on disk: batch files with some samples each, their manifest, and the one store they are merged to.

A `StoreSchema` says which arrays there are; the first axis of each counts samples. `batch_file` writes and reads
files of them; headers alone tell where bytes lie. Every file appears under its name when it is whole, and a manifest,
written last, says which ones belong together.
"""
