"""A run's batches for a custom loop, epoch after epoch."""

from collections.abc import Iterator, Sequence

from penstock.config.errors import ConfigError, hint
from penstock.data.memory_plan import share_data_path
from penstock.data.prefetch import Prefetch
from penstock.readers.order import Shard
from penstock.readers.stream import Stream
from penstock.run.data import MODES, Mode, open_batches, plan_data_path, resumed_state, source_of
from penstock.run.requirements import require_available
from penstock.run.run_config import RunConfig
from penstock.runtime.budget import MemoryBudget, Share
from penstock.runtime.memory import limit_of
from penstock.runtime.world import State, World
from penstock.tensors.batch import Batch


class DataLoader(Prefetch[Batch]):
    """The batches of a run, epoch after epoch: a loop gives what is left of an epoch, and the next loop the next one.

    A loop that was left goes on where it was; where nothing of the epoch was left, with the next one. `state_dict` is
    the position after the last batch, and after the end of a loop the start of the next epoch.
    """

    def __init__(self, source: Stream[Batch], share: Share, num_batches: int | None) -> None:
        super().__init__(source, share)
        self._num_batches = num_batches

    def __iter__(self) -> Iterator[Batch]:
        state = self.state_dict()
        may_be_done = state["row"] > 0 or state["done"] is not None
        # Not `yield from`: what the thread has made ahead stays for the next loop when this one is left.
        for batch in super().__iter__():
            may_be_done = False
            yield batch
        self.set_epoch(self.state_dict()["epoch"] + 1)
        if may_be_done:
            yield from self

    def __len__(self) -> int:
        """Batches of a whole epoch, on this rank."""
        if self._num_batches is None:
            raise TypeError(
                "how many batches an epoch has is not known, since data_config.batch_cost_size cuts them by cost"
            )
        return self._num_batches

    def __bool__(self) -> bool:
        """It is something, whatever its length."""
        return True


def create_dataloader(
    run: RunConfig,
    mode: Mode = "train",
    world: World | None = None,
    states: Sequence[State] = (),
) -> DataLoader:
    """Batches of a run's data, with `state_dict`; use it in a `with` block, or close it. Each loop is an epoch.

    "train" reads train_input_path, in training order; "eval" and "predict" read eval_input_path in the order of the
    files, cut as `penstock eval` and `penstock predict` do, "predict" without labels. With a `world` of several ranks,
    each rank reads its part of the rows. `states` are what `state_dict` gave on every rank at one moment: the rest of
    that epoch follows, on as many ranks as there are now.
    """
    if mode not in MODES:
        raise ConfigError(f"create_dataloader: mode is {mode!r}; {hint(str(mode), MODES)}")
    require_available(run)
    if world is not None and not isinstance(world, World):
        raise ConfigError(f"create_dataloader: world is {world!r}; give a penstock.World(rank, num_ranks)")
    given: object = states  # whoever calls without types easily gives one state for a list
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ConfigError(
            f"create_dataloader: states is an object of type {type(states).__name__}; give a list with what "
            "state_dict() gave on every rank, such as states=[state]"
        )
    data, key = run.data_config, "train_input_path" if mode == "train" else "eval_input_path"
    budget = MemoryBudget(limit_of(run.memory))
    shard = Shard() if world is None else Shard(world.rank, world.num_ranks)
    source = source_of(run, key, mode=mode, reserved_columns=())
    num_shuffle_rows = num_workers = 0
    if mode == "train":
        num_shuffle_rows, num_workers = plan_data_path(budget, data, source)
    else:
        share_data_path(budget, {"": source.scanned}, prefetch_bytes=data.prefetch, by_cost=source.by_cost)
    opened = open_batches(
        data, source, budget, num_shuffle_rows=num_shuffle_rows, shard=shard, num_workers=num_workers
    )
    batches = DataLoader(opened.source, budget.shares["prefetch"], source.num_batches(shard))
    if states:
        try:
            batches.load_state_dict(resumed_state(states, source, budget, shard))
        except BaseException:
            batches.close()
            raise
    return batches
