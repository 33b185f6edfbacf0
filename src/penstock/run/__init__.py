"""The only place that wires: run file -> objects -> a loop.

`run_config` knows every section, `run_files` reads and edits one, `memory_plan` divides the limit, `data` builds the
stream of batches, `model` the sharded model, and `training`, `evaluation`, `prediction`, `checking` and
`inspection` are the commands as functions. Nothing here computes; everything here decides who gets what.
"""
