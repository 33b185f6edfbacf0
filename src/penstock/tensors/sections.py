"""The part of data_config about getting batches to the model."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, NonNegativeInt

from penstock.config.section import Ignored, Later, Section
from penstock.config.sizes import MIB, ByteSize


class InputTile(StrEnum):
    """How many items meet one user at inference."""

    none = "none"
    inputs = "inputs"
    embeddings = "embeddings"


def _some(num_bytes: int | None) -> int | None:
    if num_bytes is not None and num_bytes < MIB:
        raise ValueError(f"is {num_bytes} bytes; write at least 1MiB, or leave it out to have it chosen")
    return num_bytes


class LoadingSection(Section):
    """The part of data_config about getting batches to the model."""

    num_workers: NonNegativeInt | None = None
    """Processes that parse, for features in Python of your own; absent: 0, parsing is done in the training process."""

    pin_memory: bool = True
    """Copy batches to page-locked memory where there is an accelerator; never for prediction."""

    in_order: Annotated[bool, Ignored("batches always come in the order of the data")] = True
    """Give out batches in the order of the data, whichever worker is done first."""

    prefetch: Annotated[ByteSize | None, AfterValidator(_some)] = None
    """How many bytes of batches may wait; absent: from the memory limit."""

    input_tile: Annotated[InputTile, Later("input_tile", harmless=True)] = InputTile.none
    """none: as it comes. inputs: one user row is tiled while packing. embeddings: after the lookup."""
