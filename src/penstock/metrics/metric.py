"""The contract of every metric: rows in, a number out, a state to save, sums over ranks, bytes held."""

import copy
import pickle
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, Self, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import CheckpointError
from penstock.runtime.world import Collectives

Values = Any
"""Predictions or labels: a NumPy array, a torch tensor, or a sequence of numbers."""

MetricState = dict[str, NDArray[Any]]
"""Everything a metric has added up, by name."""


class Metric(Protocol):
    """A number about predictions and labels, added up over any number of batches."""

    def update(self, preds: Values, target: Values) -> None: ...

    def merge(self, other: Self) -> None:
        """Add the rows that another metric of the same kind has seen."""

    def compute(self) -> float:
        """The value over all rows so far; NaN when it is undefined, and then `undefined_because` says why."""

    def reset(self) -> None: ...

    def state_dict(self) -> MetricState:
        """Everything that was added up, copied."""

    def load_state_dict(self, state: MetricState) -> None:
        """Go on from what `state_dict` gave."""

    @property
    def undefined_because(self) -> str | None:
        """Why there is no value; None when there is one."""

    @property
    def num_left_out(self) -> int:
        """Rows that were left out because their prediction is not a number."""


AnyMetric = TypeVar("AnyMetric", bound=Metric)


class MemoryNeeds(NamedTuple):
    """Bytes of a metric, those for a moment while its value is computed included."""

    min_bytes: int
    """With less it cannot work."""

    ample_bytes: int
    """With more it does nothing better."""


@runtime_checkable
class Bounded(Protocol):
    """A metric that knows what it needs, and keeps to what it is given. Others are not in the memory plan."""

    def memory_needs(self, num_rows: int, num_classes: int = 1) -> MemoryNeeds:
        """For so many rows with predictions of so many classes."""

    def hold_within(self, limit_bytes: int, num_rows: int) -> None:
        """Take no more than this, at least the need, for so many rows. To be called before the first row."""

    @property
    def held_bytes(self) -> int:
        """Bytes held now."""

    @property
    def computing_bytes(self) -> int:
        """Bytes held while the value of these rows is computed."""


def missing_class(num_negatives: Any, num_positives: Any) -> str | None:
    """Why rows with these counts give no area or entropy; None when both classes are there."""
    if not num_negatives + num_positives:
        return "no rows"
    if not num_positives:
        return "no positive rows"
    return None if num_negatives else "no negative rows"


def restored(
    state: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]], owner: str
) -> MetricState:
    """Copies of the arrays of a saved state, if they have the names and shapes of this metric."""
    if state.keys() != expected.keys():
        raise CheckpointError(f"{owner}: the saved state has {sorted(state)}, not {sorted(expected)}")
    arrays = {}
    for name, like in expected.items():
        saved = np.asarray(state[name])
        if saved.shape != like.shape:
            raise CheckpointError(f"{owner}: the saved {name} has shape {saved.shape}, not {like.shape}")
        arrays[name] = saved.astype(like.dtype, copy=True)
    return arrays


def reduced(metric: AnyMetric, collectives: Collectives) -> AnyMetric:
    """A metric that has seen the rows of all ranks, the same on each; the given one stays as it is.

    Every rank must call. A metric with a method `reduced(collectives)` knows a cheaper way than gathering
    states: sums are summed, rows of groups are exchanged.
    """
    cheaper = getattr(metric, "reduced", None)
    return gathered(metric, collectives) if cheaper is None else cast(AnyMetric, cheaper(collectives))


def gathered(metric: AnyMetric, collectives: Collectives) -> AnyMetric:
    """The states of all ranks, merged in rank order."""
    whole = copy.deepcopy(metric)
    whole.reset()
    # All arrays as one array of bytes: one exchange, whatever their types and shapes. They come from our ranks.
    content = pickle.dumps(metric.state_dict())
    for packed in collectives.gather(np.frombuffer(content, dtype=np.uint8)):
        part = copy.deepcopy(whole)
        part.load_state_dict(pickle.loads(packed.tobytes()))  # noqa: S301
        whole.merge(part)
    return whole
