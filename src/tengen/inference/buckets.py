"""The batch sizes that a device is prepared for.

Preparing every size would take minutes, and preparing only one would compute much
padding. So some sizes are prepared, and a batch uses the smallest one that holds it.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

__all__ = ["MIN_BUCKET_ROWS", "bucket_for", "bucket_sizes"]

MIN_BUCKET_ROWS = 8
"""The smallest batch size: a device takes as long for fewer rows."""


def bucket_sizes(max_rows: int) -> tuple[int, ...]:
    """Returns the sizes in increasing order: ``max_rows``, 3/4 of it, then halves.

    The steps are small near ``max_rows``, because batches are usually nearly full.

    Args:
        max_rows: The largest batch, at least 1.
    """
    sizes = {max_rows}
    if max_rows >= 4 * MIN_BUCKET_ROWS:
        sizes.add(3 * max_rows // 4)
    half = max_rows // 2
    while half >= MIN_BUCKET_ROWS:
        sizes.add(half)
        half //= 2
    return tuple(sorted(sizes))


def bucket_for(num_rows: int, sizes: Sequence[int]) -> int:
    """Returns the smallest of the sizes that holds the rows.

    Args:
        num_rows: 1 to the largest size.
        sizes: In increasing order.
    """
    return sizes[bisect.bisect_left(sizes, num_rows)]
