"""A feature of one's own; docs/custom.md explains it. Nothing here needs torch, so that reading stays small."""

from typing import Any

import pyarrow.compute as pc


class DayPart:
    """The part of the day and the device as one string, such as night_phone."""

    def __init__(self, night_ends: int = 6) -> None:
        self.night_ends = night_ends

    def __call__(self, hour: Any, device: Any) -> Any:
        part = pc.if_else(pc.less(hour, self.night_ends), "night", "day")
        return pc.binary_join_element_wise(part, device, "_")
