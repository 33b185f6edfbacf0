"""The only place that wires: run file -> objects -> the work of a command.

`run_config` knows every section, `run_file` reads and edits one, `plan` divides the memory limit, `data` builds the
stream of batches, `build` the sharded model; `train`, `evaluate`, `predict`, `check`, `prepare`, `merge` and `rewrite`
are the commands as functions. Nothing here computes; everything here decides who gets what.
"""
