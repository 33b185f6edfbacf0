"""NumPy arrays as a data set: `.npy` and `.npz` files, folders of them, and arrays that are in memory already.

A column is an array; its first axis are the rows. Arrays that belong together have equal lengths and make one part of
the data set: the members of an `.npz`, or the `.npy` files of a folder. Values are read by row ranges, never a whole
array, and nothing is ever unpickled.
"""

from penstock.readers.arrays.memory import survey_arrays, survey_table

__all__ = ["survey_arrays", "survey_table"]
