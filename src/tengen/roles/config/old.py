"""Configs as earlier versions wrote them, in today's form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tengen.errors import UsageError

__all__ = ["upgraded"]

_OF_SELFPLAY = ("stages", "learn_from", "gate", "rating")


def upgraded(config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """Returns the config of a ``run.json`` as ``RunConfig`` is written today.

    Before agents were parts of a config, ``agent`` was a name, and the agent's settings
    stood beside it.

    Args:
        config: The config as it was read.
        where: The file, for the message.

    Raises:
        UsageError: The config's agent stores its experience differently now.
    """
    name = config.get("agent")
    if not isinstance(name, str):
        return config
    actor = config.get("actor")
    if isinstance(actor, Mapping) and actor.get("kind", "selfplay") != "selfplay":
        raise UsageError(
            f"agent ({name}) of {where} is of an earlier version, whose experience "
            f"this version cannot read; choose another --out"
        )
    moved = (*_OF_SELFPLAY, "actor", "loss")
    agent = {key: _without_kind(key, config[key]) for key in moved if key in config}
    rest = {key: value for key, value in config.items() if key not in moved}
    return {**rest, "agent": {"kind": name, **agent}}


def _without_kind(key: str, value: Any) -> Any:
    if key not in ("actor", "loss") or not isinstance(value, Mapping):
        return value
    return {name: item for name, item in value.items() if name != "kind"}
