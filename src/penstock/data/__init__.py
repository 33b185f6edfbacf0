"""Stages between the reader and the features: a stream in, a stream out.

`shuffle` mixes rows inside windows, `cut` makes batches, `prefetch` lets a background thread
work ahead. A position is a count of rows, so that a whole chain stops and continues exactly, and each stage holds a
bounded number of rows or bytes. To add a stage, write one module and one row in
tests/data/test_every_stage.py.
"""
