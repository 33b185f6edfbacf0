"""Raw files -> samples -> batch files: in parallel, in bounded memory, and going on after any interruption.

Files that follow each other make a task; `run_task` is the one function that does it, in this process, in others or on
a Ray cluster. A task is done when its record is on disk; the manifest of all comes last. Which bytes there are depends
on the files and the run file alone, not on who did which task when.
"""
