"""The metrics of all tasks of a model, fed batch by batch, in training and in evaluation."""

import logging
from collections.abc import Mapping

import torch

from penstock.config.errors import CheckpointError
from penstock.metrics.inputs import as_array
from penstock.metrics.metric import Bounded, reduced
from penstock.metrics.wiring import BoundMetric, hold_within
from penstock.runtime.budget import Share
from penstock.runtime.world import Collectives, State
from penstock.tensors.batch import Batch

_logger = logging.getLogger(__name__)


class TaskMetrics:
    """Metrics by result name. Those of training have a state that is part of the checkpoint."""

    def __init__(
        self,
        metrics: Mapping[str, BoundMetric],
        group_columns: Mapping[str, str] | None = None,
        *,
        collectives: Collectives | None = None,
        share: Share | None = None,
        num_rows: int = 0,
    ) -> None:
        """`group_columns` says which of the columns that a batch carries along a grouping_key means.

        With `collectives` values are those of the rows of all ranks, and every rank must call `compute`. Metrics of
        training exchange by themselves when a window closes, and are not given any here. `share` counts what the
        metrics hold, and each keeps to its part of it for `num_rows`; without one they keep to their own limits.
        """
        self.bound, self._group_columns = metrics, dict(group_columns or {})
        self._collectives, self._share = collectives, share
        # What values and remarks are about: on several ranks, what `compute` found last.
        self._read = {name: bound.metric for name, bound in metrics.items()}
        if share is not None:
            hold_within(metrics, share.limit_bytes, num_rows)

    def update(self, predictions: Mapping[str, torch.Tensor], batch: Batch) -> None:
        """Add one batch; what several metrics read becomes an array once."""
        metrics, carried = self.bound.values(), batch.reserves.get() if self._group_columns else None
        groups = {}
        if carried is not None:
            groups = {key: carried.column(column) for key, column in self._group_columns.items()}
        read = {name: as_array(predictions[name]) for name in {metric.prediction for metric in metrics}}
        labels = {name: as_array(batch.labels[name]) for name in {metric.label for metric in metrics}}
        for metric in metrics:
            metric.update(read, labels, groups)
        self._lease()

    def compute(self) -> dict[str, float]:
        if self._collectives is not None:
            self._read = {
                name: reduced(bound.metric, self._collectives) for name, bound in self.bound.items()
            }
        self._lease(computing=True)
        values = {}
        for name, metric in self._read.items():
            try:
                values[name] = metric.compute()
            except Exception as error:
                self.bound[name].raise_named(error)
        return values

    def remarks(self) -> dict[str, str]:
        """By name: why a value is undefined, its metric's `remark`, and how many rows it is without."""
        found = {}
        for name, metric in self._read.items():
            try:
                count = metric.num_left_out
                left_out = (
                    f"without {count:,} row{'s' * (count > 1)} whose prediction is NaN" if count else None
                )
                parts = (metric.undefined_because, getattr(metric, "remark", None), left_out)
                found[name] = "; ".join(filter(None, parts))
            except Exception as error:
                self.bound[name].raise_named(error)
        return {name: remark for name, remark in found.items() if remark}

    def reset(self) -> None:
        """Forget every row, so that what is kept in memory and on disk goes at once."""
        self._read = {name: bound.metric for name, bound in self.bound.items()}
        for metric in self._read.values():
            metric.reset()

    def state_dict(self) -> State:
        states = {}
        for name, bound in self.bound.items():
            try:
                states[name] = bound.metric.state_dict()
            except Exception as error:
                bound.raise_named(error)
        return states

    def load_state_dict(self, state: State) -> None:
        """Go on counting; a metric that the run did not have before, or with other options, starts again."""
        for name, bound in self.bound.items():
            if name not in state:
                continue
            try:
                bound.metric.load_state_dict(state[name])
            except CheckpointError as error:
                _logger.warning("the metric '%s' counted otherwise so far and starts over (%s)", name, error)
                bound.metric.reset()
            except Exception as error:
                bound.raise_named(error)

    def _lease(self, computing: bool = False) -> None:
        """Values are worked out one after the other, so that one metric at a time needs more than it holds."""
        if self._share is None:
            return
        metrics = [bound.metric for bound in self.bound.values() if isinstance(bound.metric, Bounded)]
        total = sum(metric.held_bytes for metric in metrics)
        if computing:
            total += max((metric.computing_bytes - metric.held_bytes for metric in metrics), default=0)
        with self._share.lease(min(total, self._share.limit_bytes)):
            pass  # the share remembers the most
