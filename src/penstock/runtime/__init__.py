"""What this process was given: its rank, its bytes, its clock, and the ways it may talk.

A `World` says which rank this is; a `MemoryBudget` how many bytes each stage may hold; `Collectives` how ranks
exchange numbers; a `MemoryMonitor` what the process tree really takes; a `Journal` and a `Progress` what the
user sees. This is the only package that reads the environment.
"""
