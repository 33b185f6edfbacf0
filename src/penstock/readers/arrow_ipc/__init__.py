"""Arrow IPC files: the file format (also called Feather version 2) and the stream format.

Blocks are the record batches of the files. Where they lie, how many rows they have and how large their columns are
follows from their metadata (`messages.py`). Rows are then read from the ranges of the buffers that they take
(`rows.py`), and not from a map of the file: the kernel maps up to 2 MiB of each column for a single value, and mapped
pages count in the process's memory.
"""
