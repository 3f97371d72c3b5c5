"""How positions are sent to a device: as rows of bytes, which the device unpacks.

The format is that of core/inference/packed_rows.h, which writes the rows.

Legend: n rows, C planes, H W board.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["RowLayout", "unpack_rows"]

_FLOAT_BYTES = 4
_WORD_BITS = 32


@dataclass(frozen=True)
class RowLayout:
    """The shape of a row's planes, and how they are packed."""

    planes_shape: tuple[int, int, int]
    """C, H, W."""
    is_packed: bool = True
    """Whether a row has one bit for each entry and one scale for each plane, which
    suffices for native games; otherwise entries are float32 and may be any numbers."""

    @property
    def num_entries(self) -> int:
        """Entries of all planes."""
        num_planes, height, width = self.planes_shape
        return num_planes * height * width

    @property
    def num_bytes(self) -> int:
        """Bytes of a row, a multiple of 4."""
        if not self.is_packed:
            return self.num_entries * _FLOAT_BYTES
        num_words = -(-self.num_entries // _WORD_BITS)
        return (self.planes_shape[0] + num_words) * _FLOAT_BYTES


def unpack_rows(rows: Tensor, layout: RowLayout) -> Tensor:
    """Returns planes ``[n, C, H, W]`` float32 on the device of the rows.

    Args:
        rows: ``[n, layout.num_bytes]`` uint8, contiguous.
        layout: The layout that they were written in.
    """
    import torch

    shape = (len(rows), *layout.planes_shape)
    if not layout.is_packed:
        return rows.view(torch.float32).view(shape)
    num_scale_bytes = layout.planes_shape[0] * _FLOAT_BYTES
    scales = rows[:, :num_scale_bytes].view(torch.float32)
    places = torch.arange(8, dtype=torch.uint8, device=rows.device)
    bits = (rows[:, num_scale_bytes:, None] >> places) & 1
    planes = bits.flatten(1)[:, : layout.num_entries].view(shape)
    return planes * scales[:, :, None, None]
