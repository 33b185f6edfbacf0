"""The only place that wires: run file -> objects -> the work of a command.

`run_config` knows every section and loads a file of them, `data` builds the stream of batches, `training` divides the
memory limit and builds what a trainer takes, `restore` finds the checkpoint to start from. `train`,
`evaluate`, `predict`, `check` and `preparation` are the commands as functions. Nothing here computes: here is decided
who gets what.
"""
