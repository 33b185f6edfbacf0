"""The chainable Dataset: bounded batches for loops that are not Penstock's own.

A `Dataset` is a description (`chain.py`): a source (`sources.py`), and what its methods said about it. Iterating it
opens the same stages that a run has (`opening.py`), with a budget of its own (`memory.py`), and turns their record
batches into elements (`elements.py`): rows or batches, mapped (`mapping.py`), epoch after epoch. Where a loop is, is
known to its cursor (`cursor.py`). Torch and TensorFlow are imported only by those who ask for their tensors.
"""
