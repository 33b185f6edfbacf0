"""Arrow columns -> ids and numbers.

A feature reads columns of a record batch and gives a SparseColumn (values, lengths, weights) or a
DenseColumn. What a column holds and how it is split depends on the input mode: FG_NONE, already encoded;
FG_NORMAL, raw values. The Parser runs all features over a batch, adds labels and sample weights, checks
ranges, and names file and row of a bad value. Columns of numbers are views of Arrow's memory; strings go
through the kernels of kernels.py in one pass.
"""
