"""Parsed columns -> Batch, the first package with torch.

pack() copies the columns of a parsed batch once, to where they stay in torchrec's tensors: one KeyedTensor
for the numbers and one KeyedJaggedTensor for the ids of each group of rows. BatchLoader does it for every
record batch of a stream and keeps the position. RecordBatchTensor carries columns that no model reads. Importing
this package does not import torch.
"""
