"""Tables whose rows are given to keys as they appear, and taken back: zch and dynamicemb.

Features give keys of 64 bits. In training, in the order of the steps, each new key gets a free row once it was seen
often enough; when none is free, keys that wait for one take the rows of the keys with the lowest scores, every
`eviction_interval` steps. Row 0 is that of all keys without one. Evaluation and prediction look keys up and change
nothing. Everything that decides is in buffers, so that a checkpoint of the model holds it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from penstock.config.errors import ConfigError
from penstock.features.sections.tables import DynamicEmbedding, ZeroCollisionHash
from penstock.runtime.kernels import kernel

Int64Array = NDArray[np.int64]
OTHERS_ROW = 0
"""The row of keys that have none of their own."""

_COMPARISON = re.compile(r"\s*lambda\s+(\w+)\s*:\s*\(?\s*\1\s*(>=?)\s*(\d+(?:\.\d+)?)\s*(?:,[^()]*\)?)?\s*")

OnEvict = Callable[[Int64Array, int], None]
"""Takes the rows that change their keys, and the step."""


class GrowingTable(nn.Module):
    """Which key has which row of one table."""

    keys: torch.Tensor
    counts: torch.Tensor
    """How often the key of each row was seen; 0: the row is free."""
    last_steps: torch.Tensor
    waiting_keys: torch.Tensor
    """Keys that have no row yet, ascending; behind them 0, with a count of 0."""
    waiting_counts: torch.Tensor
    waiting_steps: torch.Tensor
    step: torch.Tensor

    def __init__(self, options: ZeroCollisionHash | DynamicEmbedding) -> None:
        super().__init__()
        self.num_rows, self._policy, self._decay, self._interval, self._threshold = _rules(options)
        self.on_evict: OnEvict | None = None
        for name in ("keys", "counts", "last_steps", "waiting_keys", "waiting_counts", "waiting_steps"):
            self.register_buffer(name, torch.zeros(self.num_rows, dtype=torch.int64))
        self.register_buffer("step", torch.zeros(1, dtype=torch.int64))
        self._slots: Int64Array | None = None
        self._free: list[int] = []
        self._version = -1

    def rows_of(self, keys: Int64Array) -> Int64Array:
        """The rows of known keys, and OTHERS_ROW."""
        found = _find(keys, self._table(), self.keys.numpy())
        return np.where(found < 0, OTHERS_ROW, found)

    def grow(self, keys: Int64Array) -> Int64Array:
        """The same for the keys of one step of training, which may get rows, and may take those of others."""
        self.step += 1
        step = int(self.step)
        distinct, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        rows = _find(distinct, self._table(), self.keys.numpy())
        known = rows >= 0
        self.counts.numpy()[rows[known]] += counts[known]
        self.last_steps.numpy()[rows[known]] = step
        self._wait(distinct[~known], counts[~known], step)
        self._admit(step)
        rows[~known] = _find(distinct[~known], self._table(), self.keys.numpy())
        return np.where(rows < 0, OTHERS_ROW, rows)[inverse]

    def _wait(self, keys: Int64Array, counts: Int64Array, step: int) -> None:
        """Count keys without a row; where too many wait, those with the lowest scores are forgotten."""
        count = int((self.waiting_counts > 0).sum())
        before = self.waiting_keys.numpy()[:count]
        merged, inverse = np.unique(np.concatenate([before, keys]), return_inverse=True)
        total, last = np.zeros(len(merged), np.int64), np.zeros(len(merged), np.int64)
        np.add.at(total, inverse[:count], self.waiting_counts.numpy()[:count])
        np.add.at(total, inverse[count:], counts)
        last[inverse[:count]] = self.waiting_steps.numpy()[:count]
        last[inverse[count:]] = step
        self._set_waiting(merged, total, last, step)

    def _set_waiting(self, keys: Int64Array, counts: Int64Array, last: Int64Array, step: int) -> None:
        if len(keys) > self.num_rows:
            best = np.sort(np.argsort(-self._scores(counts, last, step), kind="stable")[: self.num_rows])
            keys, counts, last = keys[best], counts[best], last[best]
        for buffer, values in (
            (self.waiting_keys, keys),
            (self.waiting_counts, counts),
            (self.waiting_steps, last),
        ):
            buffer.zero_()
            buffer.numpy()[: len(values)] = values

    def _admit(self, step: int) -> None:
        """Give rows to waiting keys that were seen often enough: free ones, or those of worse keys."""
        num_waiting = int((self.waiting_counts > 0).sum())
        keys, counts, last = (
            buffer.numpy()[:num_waiting].copy()
            for buffer in (self.waiting_keys, self.waiting_counts, self.waiting_steps)
        )
        ready = np.flatnonzero(counts >= self._threshold)
        if not len(ready):
            return
        scores = self._scores(counts, last, step)
        ready = ready[np.argsort(-scores[ready], kind="stable")]
        given = np.array(self._free[: len(ready)], np.int64)
        del self._free[: len(given)]
        evicted = np.empty(0, np.int64)
        if len(given) < len(ready) and step % self._interval == 0:
            others = ready[len(given) :]
            of_rows = self._scores(self.counts.numpy(), self.last_steps.numpy(), step)
            of_rows[OTHERS_ROW] = np.inf
            of_rows[given] = np.inf
            worst = np.argsort(of_rows, kind="stable")[: len(others)]
            evicted = worst[: int(np.count_nonzero(scores[others[: len(worst)]] > of_rows[worst]))]
        rows = np.concatenate([given, evicted])
        if not len(rows):
            return
        ready = ready[: len(rows)]
        self.keys.numpy()[rows] = keys[ready]
        self.counts.numpy()[rows] = counts[ready]
        self.last_steps.numpy()[rows] = last[ready]
        if len(evicted):
            self._slots = None
            if self.on_evict is not None:
                self.on_evict(evicted, step)
        else:
            _insert(rows, self._table(), self.keys.numpy())
        left = np.ones(num_waiting, np.bool_)
        left[ready] = False
        self._set_waiting(keys[left], counts[left], last[left], step)

    def _scores(self, counts: Int64Array, last_steps: Int64Array, step: int) -> NDArray[np.float64]:
        """Higher stays."""
        if self._policy == "lru":
            return last_steps.astype(np.float64)
        if self._policy == "lfu":
            return counts.astype(np.float64)
        scores: NDArray[np.float64] = counts / (step - last_steps + 1.0) ** self._decay
        return scores

    def _table(self) -> Int64Array:
        """Where each key is found; made anew where the buffers were loaded."""
        if self._slots is None or self._version != self.keys._version:
            self._version = self.keys._version
            counts = self.counts.numpy()
            counts[OTHERS_ROW] = max(1, counts[OTHERS_ROW])  # never free
            self._slots = np.full(1 << (2 * self.num_rows - 1).bit_length(), -1, np.int64)
            used = np.flatnonzero(counts > 0)
            _insert(used[used != OTHERS_ROW], self._slots, self.keys.numpy())
            self._free = np.flatnonzero(counts == 0).tolist()
        return self._slots


def _rules(options: ZeroCollisionHash | DynamicEmbedding) -> tuple[int, str, float, int, int]:
    """Rows, policy, decay exponent, steps between evictions, and how often a key is seen before it gets a row."""
    if isinstance(options, DynamicEmbedding):
        admission = options.frequency_admission_strategy
        policies = {"STEP": "lru", "TIMESTAMP": "lru", "LFU": "lfu"}
        if options.score_strategy not in policies:
            known = ", ".join(policies)
            raise ConfigError.at(
                "dynamicemb.score_strategy", f"is '{options.score_strategy}'; known: {known}"
            )
        policy = policies[options.score_strategy]
        return options.max_capacity, policy, 1.0, 1, 1 if admission is None else admission.threshold
    name, policy_options = options.chosen("eviction_policy") or ("lfu", None)
    decay = getattr(policy_options, "decay_exponent", 1.0)
    threshold = 1
    if options.threshold_filtering_func:
        found = _COMPARISON.fullmatch(options.threshold_filtering_func)
        if found is None:
            problem = "is not understood; write such as 'lambda x: x > 3': seen more than 3 times"
            raise ConfigError.at("zch.threshold_filtering_func", problem)
        _, comparison, number = found.groups()
        threshold = int(float(number)) + (comparison == ">")
    return options.zch_size, name, decay, options.eviction_interval, max(1, threshold)


def grown(
    values: torch.Tensor,
    parts: Mapping[str, Sequence[tuple[int, int]]],
    tables: nn.ModuleDict,
    training: bool,
) -> torch.Tensor:
    """Ids with rows in place of the keys of growing tables; `parts` are where the keys of each table stand."""
    rows = values.clone()
    for name, places in parts.items():
        keys = np.concatenate([values[start:end].cpu().numpy() for start, end in places])
        table = tables[name]
        assert isinstance(table, GrowingTable)
        found = torch.from_numpy(table.grow(keys) if training else table.rows_of(keys))
        position = 0
        for start, end in places:
            rows[start:end] = found[position : position + end - start]
            position += end - start
    return rows


@kernel
def _mixed(key: Any) -> Any:
    """Neighbouring keys to slots far apart."""
    word = np.uint64(key)
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@kernel
def _find(keys: Any, slots: Any, table_keys: Any) -> Any:
    """The row of each key, -1 where it has none."""
    mask = np.uint64(len(slots) - 1)
    rows = np.empty(len(keys), np.int64)
    for index in range(len(keys)):
        slot = _mixed(keys[index]) & mask
        while slots[slot] >= 0 and table_keys[slots[slot]] != keys[index]:
            slot = (slot + np.uint64(1)) & mask
        rows[index] = slots[slot]
    return rows


@kernel
def _insert(rows: Any, slots: Any, table_keys: Any) -> None:
    mask = np.uint64(len(slots) - 1)
    for row in rows:
        slot = _mixed(table_keys[row]) & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = row
