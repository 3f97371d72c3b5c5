"""``tengen players``: lists the bundled players and their strengths."""

from __future__ import annotations

import argparse
from typing import Any

from tengen.bundled.players import (
    BUNDLED,
    Manifest,
    RatedLevel,
    bundled_names,
    known_name,
    read_manifest,
)
from tengen.config import to_dict


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command-line arguments of ``tengen players`` to ``parser``."""
    parser.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="show the levels of one player, for example go/9",
    )


def players(args: argparse.Namespace) -> dict[str, Any]:
    """Prints the bundled players, or one player with its levels.

    Raises:
        UsageError: The named player does not exist, or a manifest is damaged.
    """
    names = bundled_names()
    if args.name is not None:
        names = [known_name(args.name.removeprefix(BUNDLED))]
    found = [read_manifest(name) for name in names]
    if not args.json:
        for manifest in found:
            print(_line(manifest))
        if args.name is not None:
            print("\n".join(_levels(found[0])))
    return {"players": [to_dict(manifest) for manifest in found]}


def _line(manifest: Manifest) -> str:
    told = "; ".join(
        f"{row.what}: {100 * row.value:.1f} % ({100 * row.low:.1f} to "
        f"{100 * row.high:.1f})"
        for row in manifest.strength
    )
    size = f"{manifest.num_bytes / 1000:,.0f} kB"
    return f"{manifest.name:<12} {manifest.net:<9} {size:>7}  {told}"


def _levels(manifest: Manifest) -> list[str]:
    rows = [
        f"  level {number}  {level.name:<12} {level.rating:>5.0f} +- "
        f"{level.rating_error:<4.0f} {_setting(level)}"
        for number, level in enumerate(manifest.levels, 1)
    ]
    return ["ratings in Elo, random has 0:", *rows] if rows else []


def _setting(level: RatedLevel) -> str:
    if level.temperature > 0:
        return f"the policy at temperature {level.temperature:g}"
    return f"{level.simulations:,} simulation{'s' if level.simulations > 1 else ''}"
