"""Bundled players as pages know them."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from tengen.bundled import Manifest, read_manifest
from tengen.errors import UsageError

__all__ = ["bundled_of", "describe_bundled", "describe_levels"]

# Replaces the slashes of a name in a path of the server.
_SLASH = "~"


def bundled_of(request: Request) -> str | None:
    """Returns the name of the bundled player that a request is about, or None."""
    player = request.path_params.get("player")
    return None if player is None else str(player).replace(_SLASH, "/")[:80]


def describe_bundled(name: str) -> dict[str, Any]:
    """Returns one entry of the list of players, as JSON values.

    Keys: ``id``, as paths have it, ``name``, ``net``, ``games`` and ``strength``, a
    list of ``what``, ``value``, ``low`` and ``high``. Of one whose manifest is damaged,
    which hides no other: ``id``, ``name`` and ``trouble``, a line.

    Args:
        name: Of the player.
    """
    named = {"id": name.replace("/", _SLASH), "name": name}
    try:
        manifest = read_manifest(name)
    except UsageError as error:
        return {**named, "trouble": str(error)}
    return {
        **named,
        "net": manifest.net,
        "games": manifest.games,
        "strength": [
            {
                "what": row.what,
                "value": row.value,
                "low": row.low,
                "high": row.high,
            }
            for row in manifest.strength
        ],
    }


def describe_levels(manifest: Manifest, most_simulations: int) -> list[dict[str, Any]]:
    """Returns the levels of a player that a server allows, as JSON values.

    Args:
        manifest: The player's.
        most_simulations: Of one search.
    """
    return [
        {"level": number, "name": level.name, "rating": level.rating}
        for number, level in enumerate(manifest.levels, 1)
        if level.simulations <= most_simulations
    ]
