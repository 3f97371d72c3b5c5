"""Roles that run by themselves: each that a run needs, as often as it may be there."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import dataclass

from scripts.manifests.commands import (
    Typed,
    all_commands,
    config_of,
    parsed_commands,
)
from scripts.manifests.finding import Finding
from scripts.manifests.overlay import ROOT, Overlay

from tengen.roles import RunConfig

__all__ = ["check_processes"]

_SELFPLAY = "selfplay"


@dataclass(frozen=True)
class _Hosted:
    """A role that a container works as."""

    typed: Typed
    name: str
    """As it is typed, with --index where that is above 0."""
    count: int
    """Pods that have it, at most."""


def check_processes(overlay: Overlay) -> Iterator[Finding]:
    """Yields roles that no pod has, or more pods than a run may have.

    How many it may have is said by docs/howto/machines/roles.md. A run that ``tengen
    train`` makes and does not train, by ``--games 0`` or ``--frames 0``, needs every
    role of its agent. Where it trains it has them all, and beside it there may be more
    of self-play alone.
    """
    commands = [
        (typed, args, config_of(typed)) for typed, args in parsed_commands(overlay)
    ]
    if len(commands) < len(all_commands(overlay)):
        return  # what one is to be is not known; check_commands tells
    trains = [one for one in commands if one[2] is not None]
    hosted = [
        found
        for typed, args, config in commands
        if config is None
        for found in _hosted(overlay, typed, args)
    ]
    for typed, _, _ in trains[1:]:
        rule = "must be the only command that makes or trains a run; remove one"
        words = " ".join(("tengen", *typed.words))
        yield overlay.finding(typed.document, typed.path, words, rule)
    if not trains:
        for one in hosted[:1]:
            rule = "must be of a run that tengen train makes in the overlay; add that"
            yield overlay.finding(one.typed.document, one.typed.path, one.name, rule)
        return
    first, args, config = trains[0]
    assert config is not None
    allowed = _allowed(config, is_trained=0 not in (args.games, args.frames))
    for name in dict.fromkeys((*allowed, *(one.name for one in hosted))):
        having = [one for one in hosted if one.name == name]
        found = sum(one.count for one in having)
        wanted = allowed.get(name, range(1))
        if found not in wanted:
            least, most = wanted.start, wanted.stop - 1
            shown = str(least) if least == most else f"{least} to {most}"
            typed = having[-1].typed if having else first
            rule = f"must be {shown}, those that the run of tengen train needs; "
            advice = "start it" if found < least else "remove what is too much"
            where = f"{typed.path}, processes of tengen {name}"
            yield overlay.finding(typed.document, where, found, rule + advice)


def _allowed(config: RunConfig, *, is_trained: bool) -> dict[str, range]:
    """Returns how many processes there may be by name; of others none.

    Args:
        config: Of the run.
        is_trained: Whether ``tengen train`` has the roles itself.
    """
    schedule = config.agent.schedule(config)
    players = range(0 if is_trained else 1, _most_players() + 1)
    if is_trained:
        return {_SELFPLAY: players} if schedule.acting == _SELFPLAY else {}
    allowed = {}
    for role in schedule.needed:
        if role == _SELFPLAY:
            allowed[role] = players
            continue
        allowed[role] = range(1, 2)
        for index in range(1, config.launch.of(role).count):
            allowed[f"{role} --index {index}"] = range(1, 2)
    return allowed


def _hosted(
    overlay: Overlay, typed: Typed, args: argparse.Namespace
) -> Iterator[_Hosted]:
    role = typed.words[0]
    if role not in _roles():
        return
    index = getattr(args, "index", 0)
    name = f"{role} --index {index}" if index else role
    for pod in overlay.pods():
        # What works at the start of a pod has ended when the pod works.
        is_its = typed.path.startswith(f"{pod.path}.spec.containers[")
        if pod.document is typed.document and is_its:
            yield _Hosted(typed, name, pod.max_replicas)


def _page() -> str:
    return (ROOT / "docs" / "howto" / "machines" / "roles.md").read_text()


def _most_players() -> int:
    (said,) = re.findall(r"^\| selfplay \| up to (\d+) \|", _page(), re.M)
    return int(said)


def _roles() -> set[str]:
    """Returns the roles that are processes: of the page, and of environments."""
    table = re.findall(r"^\| (\w+) \| (?:one|up to \d+)\b", _page(), re.M)
    return {*table, "actor", "inference"}
