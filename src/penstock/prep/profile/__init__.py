"""How values are distributed in a data set."""
