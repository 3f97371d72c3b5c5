"""Kubernetes' quantities, as ``500m``, ``2`` and ``16Gi``.

Source: the API conventions of Kubernetes, "Quantity".
"""

from __future__ import annotations

import re
from decimal import Decimal

__all__ = ["parse_quantity"]

_UNITS = {
    "m": Decimal("0.001"),
    "": Decimal(1),
    **{unit: Decimal(1000) ** (i + 1) for i, unit in enumerate("kMGTPE")},
    **{f"{unit}i": Decimal(1024) ** (i + 1) for i, unit in enumerate("KMGTPE")},
}


def parse_quantity(value: object) -> Decimal | None:
    """Returns the number that a quantity means, or None where it is none."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z]*)", str(value))
    if match is None or match[2] not in _UNITS:
        return None
    return Decimal(match[1]) * _UNITS[match[2]]
