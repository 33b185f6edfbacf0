"""Columns of several lookups side by side, with as few copies as there can be.

A lookup gives its columns in one tensor (KeyedTensor). Neighbours there that are neighbours in a group stay together: a
group that is one such run is a view, and groups that share a run share it.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

import torch
from torchrec.sparse.jagged_tensor import KeyedTensor

Source = tuple[str, str]
"""Of one column: which lookup it stands in, and its key there."""

Lists = tuple[tuple[str, tuple[Source, ...]], ...]
"""What is wanted: groups, and their columns in order."""

Layout = tuple[tuple[str, tuple[str, ...], tuple[int, ...]], ...]
"""What there is: lookups, their keys in order, and the widths of these."""


def take_columns(
    wanted: Lists, lookups: Mapping[str, KeyedTensor], others: Mapping[str, torch.Tensor]
) -> dict[str, list[torch.Tensor]]:
    """The parts of each group in order; a column that is in no lookup is found by its key in `others`."""
    layout = tuple((name, tuple(each.keys()), tuple(each.length_per_key())) for name, each in lookups.items())
    sizes, places = _runs(wanted, layout)
    pieces = {name: torch.split(each.values(), sizes[name], dim=1) for name, each in lookups.items()}
    return {
        group: [pieces[lookup][place] if isinstance(place, int) else others[place] for lookup, place in found]
        for group, found in places.items()
    }


def join(parts: Sequence[torch.Tensor], more: Sequence[torch.Tensor] = ()) -> torch.Tensor:
    """Side by side, in float32 where tables hold float16."""
    every = [*parts, *more]
    return every[0].float() if len(every) == 1 else torch.cat(every, dim=1).float()


@lru_cache(maxsize=64)
def _runs(
    wanted: Lists, layout: Layout
) -> tuple[dict[str, list[int]], dict[str, list[tuple[str, int | str]]]]:
    """How each lookup is split, and of which pieces each group is made: (lookup, index of the piece or key).

    Keys that follow each other in every group that has one of them, and in the lookup, are one piece.
    """
    position = {(name, key): index for name, keys, _ in layout for index, key in enumerate(keys)}
    cuts = {name: {0, len(keys)} for name, keys, _ in layout}
    for _, sources in wanted:
        for first, after in _neighbours(sources, position):
            cuts[first[0]] |= {position[first], position[after] + 1}
    sizes: dict[str, list[int]] = {}
    piece: dict[Source, int] = {}
    for name, keys, widths in layout:
        edges = sorted(cuts[name])
        sizes[name] = [sum(widths[begin:end]) for begin, end in pairwise(edges)]
        piece |= {(name, keys[begin]): index for index, begin in enumerate(edges[:-1])}
    places: dict[str, list[tuple[str, int | str]]] = {}
    for group, sources in wanted:
        found: list[tuple[str, int | str]] = []
        for source in sources:
            if source not in position:
                found.append(source)
            elif source in piece:  # the other columns of a piece come with its first
                found.append((source[0], piece[source]))
        places[group] = found
    return sizes, places


def _neighbours(sources: Sequence[Source], position: Mapping[Source, int]) -> Iterator[tuple[Source, Source]]:
    """First and last column of each run of columns that follow each other in their lookup, too."""
    run: list[Source] = []
    for source in (*sources, None):
        follows = (
            source is not None
            and source in position
            and bool(run)
            and run[-1][0] == source[0]
            and position[run[-1]] + 1 == position[source]
        )
        if run and not follows:
            yield run[0], run[-1]
            run = []
        if source is not None and source in position:
            run.append(source)
