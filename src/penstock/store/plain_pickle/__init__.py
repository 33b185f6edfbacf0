"""Pickles of plain data: containers, numbers, text, and NumPy's arrays.

A pickle is a program, and whoever wrote the file wrote the program. Python's own unpickler runs it; here a machine of
our own does, that has no instruction for anything but plain data: `instructions` are what it knows, `names` the few
things that a pickle may name, `values` what it may come to. Time and memory are in proportion to its bytes.
"""

from penstock.store.plain_pickle.reading import read_plain_pickle
from penstock.store.plain_pickle.values import shown

__all__ = ["read_plain_pickle", "shown"]
