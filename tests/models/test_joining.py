"""Columns of lookups, taken in the order of groups."""

import numpy as np
import torch
from torchrec import KeyedTensor

from penstock.models.layers.joining import join, take_columns


def lookup(**widths):
    values = torch.arange(2 * sum(widths.values()), dtype=torch.float32).reshape(2, -1)
    return KeyedTensor(list(widths), list(widths.values()), values)


def test_a_run_of_neighbours_is_a_view():
    found = lookup(a=2, b=1, c=3)
    parts = take_columns((("fm", (("t", "b"), ("t", "c"))),), {"t": found}, {})["fm"]

    assert len(parts) == 1
    assert join(parts).data_ptr() == found.values()[:, 2:].data_ptr()


def test_any_order_of_any_columns():
    """Random groups of columns of two lookups and others equal the columns joined one by one."""
    generator = np.random.default_rng(0)
    for _ in range(200):
        lookups = {
            name: lookup(**{f"{name}{i}": int(w) for i, w in enumerate(generator.integers(1, 4, 5))})
            for name in "tn"
        }
        others = {"made": torch.rand(2, 3)}
        every = {(name, key): found[key] for name, found in lookups.items() for key in found.keys()}  # noqa: SIM118
        every["made", "made"] = others["made"]
        sources = sorted(every)
        wanted = []
        for index in range(3):
            start, size = generator.integers(0, 8), generator.integers(1, 8)
            chosen = sources[start : start + size] if generator.random() < 0.5 else list(sources)
            if generator.random() < 0.5:
                generator.shuffle(chosen)
            wanted.append((f"g{index}", tuple(tuple(map(str, source)) for source in chosen)))
        parts = take_columns(tuple(wanted), lookups, others)

        for group, columns in wanted:
            assert torch.equal(join(parts[group]), torch.cat([every[source] for source in columns], dim=1))
