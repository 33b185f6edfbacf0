"""How the values of a data set are distributed: nulls, distinct values, extremes, lengths, order; in bounded memory.

`profile_rows` looks at a few pieces from all over the data, or at all rows, and feeds each column to a `ColumnProfile`,
which keeps sketches of a fixed size. `advise` reads the result and says what to change, and how. Everything is computed
per block of rows; what is held does not depend on how many rows there are.
"""

from penstock.prep.profile.advice import advise
from penstock.prep.profile.column import ColumnFacts
from penstock.prep.profile.dataset import DataProfile, profile_pieces, profile_rows

__all__ = ["ColumnFacts", "DataProfile", "advise", "profile_pieces", "profile_rows"]
