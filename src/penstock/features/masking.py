"""Values that are hidden in training: of a feature with use_mask, a share of the rows reads as if it had none.

Which rows follows from the seed, the feature and the row ids alone, so that it is the same for any number of workers,
after a resume, and in every epoch. Two features hide rows of their own.
"""

from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from penstock.features.values import BoolArray, Int64Array, Strings, Values
from penstock.readers.hashes import mixed


@dataclass(frozen=True, slots=True)
class Masking:
    share: float
    seed: int = 0

    def hidden_rows(self, feature_name: str, row_ids: Int64Array) -> BoolArray:
        key = blake2b(f"{self.seed} {feature_name}".encode(), digest_size=8).digest()
        hashes = mixed(row_ids.view(np.uint64) ^ np.frombuffer(key, np.uint64))
        return np.asarray((hashes >> np.uint64(11)) * 2.0**-53 < self.share)


def without_rows(values: Values, hidden: BoolArray) -> Values:
    """The values where these rows have none."""
    items, lengths, steps, weights = values.items, values.lengths, values.steps, values.weights
    if isinstance(items, Strings) and steps is None:  # which may not be split yet; an empty one is missing
        ends = np.where(np.repeat(hidden, lengths), items.starts, items.ends)
        return replace(values, items=Strings(items.data, items.starts, ends))
    if steps is not None:
        steps, hidden = np.where(hidden, np.int32(0), steps), np.repeat(hidden, steps)
    kept = np.repeat(~hidden, lengths)
    return replace(
        values,
        items=items.take(kept) if isinstance(items, Strings) else items[kept],
        lengths=np.where(hidden, np.int32(0), lengths) if steps is None else lengths[~hidden],
        steps=steps,
        weights=None if weights is None else weights[kept],
    )
