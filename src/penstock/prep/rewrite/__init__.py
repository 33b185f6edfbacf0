"""Any data set -> well-sized Parquet files, in the order of the data or in a random one, in bounded memory.

Every row draws a 64-bit key from the seed; the shuffled order is that of the keys. So it depends on the rows, their
order and the seed, and on nothing else: not on the memory, the files or the row groups. Keys are sorted outside of
memory: the first pass scatters rows over temporary buckets by the leading bits of their keys, the second loads one
bucket at a time, sorts it, and appends it to the output. Without a shuffle there is one pass. The output appears under
its name when it is whole, with as many rows as were read, and the same ones.
"""

from penstock.prep.rewrite.folder import check_output
from penstock.prep.rewrite.options import COMPRESSIONS, RewriteOptions
from penstock.prep.rewrite.rewriting import rewrite
from penstock.prep.rewrite.summary import SUMMARY_NAME, RewriteSummary

__all__ = ["COMPRESSIONS", "SUMMARY_NAME", "RewriteOptions", "RewriteSummary", "check_output", "rewrite"]
