"""From what each rank has seen to what all have seen."""

import copy
import json
import math
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from penstock.metrics.metric import Metric, MetricState
from penstock.runtime.collectives import Collectives

AnyMetric = TypeVar("AnyMetric", bound=Metric)


def reduced(metric: AnyMetric, collectives: Collectives) -> AnyMetric:
    """A metric that has seen the rows of all ranks, the same on each; the given one stays as it is.

    Every rank must call. A metric with a method `reduced(collectives)` knows a cheaper way than gathering
    states: sums are summed, rows of groups are exchanged.
    """
    own_way = getattr(metric, "reduced", None)
    return gathered(metric, collectives) if own_way is None else cast(AnyMetric, own_way(collectives))


def gathered(metric: AnyMetric, collectives: Collectives) -> AnyMetric:
    """The states of all ranks, merged in rank order."""
    whole = copy.deepcopy(metric)
    whole.reset()
    for packed in collectives.gather(_packed(metric.state_dict())):
        part = copy.deepcopy(whole)
        part.load_state_dict(_unpacked(packed))
        whole.merge(part)
    return whole


def _packed(state: MetricState) -> NDArray[np.uint8]:
    """All arrays as one array of bytes: one exchange, whatever their types and shapes."""
    arrays = {name: np.asarray(array, order="C") for name, array in state.items()}
    described = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    parts = [json.dumps(described).encode(), b"\n", *(array.tobytes() for array in arrays.values())]
    return np.frombuffer(b"".join(parts), dtype=np.uint8)


def _unpacked(content: NDArray[np.uint8]) -> MetricState:
    described, _, values = content.tobytes().partition(b"\n")
    state, offset = {}, 0
    for name, dtype, shape in json.loads(described):
        array = np.frombuffer(values, dtype, math.prod(shape), offset).reshape(shape)
        state[name], offset = array.copy(), offset + array.nbytes
    return state
