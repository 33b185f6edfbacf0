"""From a chain to the elements that it gives: the wiring."""

from typing import Any, TypeAlias

from penstock.batching.cost import CostCut
from penstock.batching.prefetch import Prefetch, prefetch
from penstock.batching.rows import cut_by_rows
from penstock.batching.shuffle import shuffle
from penstock.pipeline.dataset.chain import ByCost, ByRows, Chain
from penstock.pipeline.dataset.element_bytes import element_bytes
from penstock.pipeline.dataset.elements import Batches, Elements, Finish, Maker, Rows
from penstock.pipeline.dataset.memory import share_memory, shuffle_rows
from penstock.pipeline.dataset.taking import TakeRows
from penstock.readers.blocks import Shard
from penstock.readers.reading import read_blocks
from penstock.readers.stream import RecordStream
from penstock.readers.survey import Survey
from penstock.runtime.budget import MemoryBudget

_ROWS_AT_ONCE = 1024
"""So many rows are drawn from a shuffle at once, or wait to be given out one by one; or a batch, if that has more."""

Opened: TypeAlias = "Elements | Prefetch[Any]"


def open_chain(chain: Chain, finish: Finish | None) -> Opened:
    """The elements of one pass, from the start of epoch 0; made ahead by a thread where the chain says so.

    `finish` makes of a dict of arrays what is given out; None: record batches are.
    """
    survey = chain.survey()
    num_shuffle_rows = shuffle_rows(chain, survey)
    budget = share_memory(chain, survey, num_shuffle_rows)
    stream = _cut(_rows(chain, survey, budget, num_shuffle_rows), chain, survey, budget)
    paths = [file.path for file in survey.files]
    maker = Maker(chain, chain.names(), chain.source.shapes(), paths, finish)
    elements = Rows(stream, maker) if chain.cut is None else Batches(stream, maker)
    if chain.prefetch_bytes is None:
        return elements
    return prefetch(elements, budget.shares["prefetch"], element_bytes)


def count_batches(chain: Chain, cut: ByCost, epoch: int) -> int:
    """Batches that an epoch gives when it is cut by cost: one pass over the columns that tell it."""
    whole, costs = chain.survey(), chain.source.survey(cut.cost.columns, chain.first_rows)
    num_shuffle_rows = shuffle_rows(chain, whole)
    budget = share_memory(chain, costs, num_shuffle_rows)
    stream = _rows(chain, costs, budget, num_shuffle_rows)
    stream.set_epoch(epoch)
    return _cut_by_cost(stream, cut, costs, budget).count().num_batches


def _rows(chain: Chain, survey: Survey, budget: MemoryBudget, num_shuffle_rows: int) -> RecordStream:
    """Read, shuffled, and as many as are to be taken."""
    shuffling = chain.shuffling
    seed = shuffling.seed if shuffling else None
    stream: RecordStream = read_blocks(survey, budget.shares["reader"], seed, chain.shard or Shard())
    if shuffling:
        batch_rows = chain.cut.num_rows if isinstance(chain.cut, ByRows) else 1
        piece_rows = batch_rows * max(1, _ROWS_AT_ONCE // batch_rows)
        stream = shuffle(
            stream, num_shuffle_rows, shuffling.seed, budget.shares["shuffle"], piece_rows=piece_rows
        )
    return stream if chain.take_rows is None else TakeRows(stream, chain.take_rows)


def _cut(stream: RecordStream, chain: Chain, survey: Survey, budget: MemoryBudget) -> RecordStream:
    if isinstance(chain.cut, ByCost):
        return _cut_by_cost(stream, chain.cut, survey, budget)
    if isinstance(chain.cut, ByRows):
        return cut_by_rows(stream, chain.cut.num_rows, chain.cut.drop_remainder)
    return cut_by_rows(stream, _ROWS_AT_ONCE)


def _cut_by_cost(stream: RecordStream, cut: ByCost, survey: Survey, budget: MemoryBudget) -> CostCut:
    return CostCut(stream, cut.cost, cut.rules, [file.path for file in survey.files], budget.shares["cut"])
