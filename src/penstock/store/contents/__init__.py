"""What is in a batch file, a folder of batch files or a store: arrays from headers, values by a few megabytes.

`contents_of` finds out which of them a path is. A block is what is read at once: some rows of arrays that lie in files
as they are, a batch file, a row group. Whoever looks chooses blocks and rows, and `Extremes` keeps what was seen.
"""

from penstock.store.contents.contents import ArrayContents, Block, Contents, Part
from penstock.store.contents.extremes import Extremes
from penstock.store.contents.finding import contents_of

__all__ = ["ArrayContents", "Block", "Contents", "Extremes", "Part", "contents_of"]
