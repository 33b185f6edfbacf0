"""How many elements a pass over a chain gives."""

from penstock.pipeline.dataset.chain import ByCost, ByRows, Chain
from penstock.pipeline.dataset.opening import count_batches
from penstock.readers.blocks import Shard


def num_elements(chain: Chain, first_epoch: int) -> int:
    """Rows or batches of the pass that begins with an epoch; cut by cost, the cost column is read to find out."""
    if chain.epochs is None and chain.take_in_all is None:
        raise TypeError("a Dataset with epochs without end has no length")
    if chain.epochs is None:
        return chain.take_in_all or 0
    if isinstance(chain.cut, ByCost) and chain.shuffling:
        epochs = range(first_epoch, first_epoch + chain.epochs)
        total = sum(_of_epoch(chain, epoch) for epoch in epochs)
    else:
        total = chain.epochs * _of_epoch(chain, first_epoch)
    return total if chain.take_in_all is None else min(total, chain.take_in_all)


def _of_epoch(chain: Chain, epoch: int) -> int:
    start, end = (chain.shard or Shard()).bounds(chain.survey().num_rows)
    num_rows = end - start if chain.take_rows is None else min(end - start, chain.take_rows)
    if chain.cut is None:
        return num_rows
    if isinstance(chain.cut, ByRows):
        whole, rest = divmod(num_rows, chain.cut.num_rows)
        num_batches = whole + (rest > 0 and not chain.cut.drop_remainder)
    else:
        num_batches = count_batches(chain, chain.cut, epoch) if num_rows else 0
    return num_batches if chain.take_batches is None else min(num_batches, chain.take_batches)
