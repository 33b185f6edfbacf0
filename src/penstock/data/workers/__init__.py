"""Processes that do something with every batch of a stream, when Python is what the stream waits for.

The parent reads, shuffles and cuts; a worker owns no rows. A record batch is written into memory that all
processes share, a worker applies a function to it and leaves the arrays of its result beside it, and the
parent gives the results out in the order of the source. So nothing depends on how many workers there are.

`stage.in_workers` is the stage, `measured.when_it_helps` the one that finds out whether workers help,
`counting` says how many fit.
"""
