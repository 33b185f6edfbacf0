"""Deciding before the start whether record batches fit the reader's share."""

from dataclasses import dataclass
from typing import Self

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import KIB, MIB, format_size
from penstock.readers.arrow_ipc.layout import IpcBatch, IpcLayout
from penstock.runtime.budget import Share

PART_BYTES = 8 * MIB
"""What rows take that are given out at once, where the share allows it."""
_LEAST_PART_BYTES = 64 * KIB


@dataclass(frozen=True, slots=True)
class Needs:
    """The largest needs of all record batches."""

    dictionary_bytes: int
    """Of the dictionaries of a file."""
    plain_bytes: int
    """Of a record batch of which some rows can be had alone; 0: there is none."""
    plain_row_bytes: int
    """Of a row of these."""
    whole_needed_bytes: int
    """While a compressed record batch is unpacked whole; 0: there is none."""
    whole_kept_bytes: int
    """When it is unpacked."""

    @classmethod
    def of(cls, layout: IpcLayout) -> Self:
        """From the metadata."""
        plain = [batch for batch in layout.batches if not batch.is_compressed]
        whole = [batch for batch in layout.batches if batch.is_compressed]
        return cls(
            max((file.dictionary_bytes for file in layout.files), default=0),
            max((batch.decoded_bytes for batch in plain), default=0),
            max((batch.row_bytes for batch in plain), default=0),
            max((batch.packed_bytes + kept_bytes(layout, batch) for batch in whole), default=0),
            max((kept_bytes(layout, batch) for batch in whole), default=0),
        )

    @property
    def least_bytes(self) -> int:
        """Rows that can be had alone come in parts of 64 KiB."""
        return self._share_bytes(_LEAST_PART_BYTES)

    @property
    def ample_bytes(self) -> int:
        """They come in parts of 8 MiB."""
        return self._share_bytes(PART_BYTES)

    def most_part_bytes(self, limit_bytes: int) -> int:
        """The most that rows may take that are had alone: any two neighbours fit the share."""
        most_bytes = min(limit_bytes // 2, limit_bytes - max(self.whole_needed_bytes, self.whole_kept_bytes))
        return most_bytes - self.dictionary_bytes

    def _share_bytes(self, part_bytes: int) -> int:
        plain_bytes = 0
        if self.plain_bytes:
            plain_bytes = self.dictionary_bytes + max(self.plain_row_bytes, min(part_bytes, self.plain_bytes))
        return max(1, max(self.whole_needed_bytes, plain_bytes) + max(self.whole_kept_bytes, plain_bytes))


def kept_bytes(layout: IpcLayout, batch: IpcBatch) -> int:
    """What is in use of a compressed record batch when it is unpacked."""
    return batch.decoded_bytes + layout.files[batch.file_index].dictionary_bytes


def check_fits(layout: IpcLayout, needs: Needs, share: Share) -> None:
    """Raises BudgetExceeded with the numbers where a record batch cannot be read inside the share."""
    most_part_bytes = needs.most_part_bytes(share.limit_bytes)
    for batch in layout.batches:
        if batch.is_compressed:
            needed_bytes = needs.whole_needed_bytes + needs.whole_kept_bytes
            how = "is compressed, so that it is unpacked whole, beside the one before it"
            does_fit = needed_bytes <= share.limit_bytes
        else:
            needed_bytes, how = needs.least_bytes, "is read some rows at a time"
            does_fit = batch.row_bytes <= most_part_bytes
        if not does_fit:
            raise BudgetExceeded(
                f"{layout.files[batch.file_index].file.path}: record batch {batch.index} has "
                f"{format_size(batch.decoded_bytes)} and {how}, which needs {format_size(needed_bytes)}, but "
                f"{share.name} may hold {format_size(share.limit_bytes)}; raise {share.setting}, read fewer columns, "
                "or write the file with smaller record batches"
            )
