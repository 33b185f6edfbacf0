"""What this process was given: its rank, its bytes, its clock, and how it exchanges numbers with others.

A `World` is the rank and the cores; a `MemoryBudget` how many bytes each stage may hold; `Collectives` how ranks
exchange numbers; a `MemoryMonitor` what the process tree really takes; a `Journal` and a `ProgressLogger` what the
user sees.
"""
