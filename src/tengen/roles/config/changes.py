"""Which fields of a run's config may change once it has begun, and which did change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tengen.config import to_dict
from tengen.errors import UsageError
from tengen.overrides import override
from tengen.roles.config.run_config import RunConfig

__all__ = ["change_config", "config_changes"]

_FIXED = (
    "task",
    "recipe",
    "seed",
    "net",
    "agent.kind",
    "store.kind",
    "store.sampler",
    "store.drawn_by",
    "store.validation_share",
    "learner.num_shards",
    "learner.optimizer.kind",
    "learner.optimizer.decays_scales",
)


def change_config(config: RunConfig, settings: Sequence[str]) -> RunConfig:
    """Returns the config of a resumed run with ``--set`` settings applied.

    Raises:
        UsageError: A setting is unknown, out of range, or fixed since the run began.
    """
    changed = override(config, settings)
    before, after = to_dict(config), to_dict(changed)
    changes = [
        change
        for path in (*_FIXED, *(f"agent.{name}" for name in config.agent.fixed))
        for change in _differences(path, _lookup(before, path), _lookup(after, path))
    ]
    if changes:
        names = ", ".join(f"{path} ({new})" for path, _, new in changes)
        verb = "is" if len(changes) == 1 else "are"
        values = ", ".join(str(old) for _, old, _ in changes)
        raise UsageError(
            f"{names} {verb} fixed since the run began, as {values}; "
            f"leave it out or choose another --out"
        )
    return changed


def config_changes(before: RunConfig, after: RunConfig) -> list[str]:
    """Returns each field that differs, as ``store.min_rows 8000 -> 1000``."""
    old, new = to_dict(before), to_dict(after)
    return [
        f"{path} {_shown(was)} -> {_shown(now)}"
        for name in old
        for path, was, now in _differences(name, old[name], new[name])
    ]


def _shown(value: Any) -> str:
    return '""' if value == "" else str(value)


def _differences(path: str, old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yields (path, old, new) for every field below ``path`` that differs."""
    if isinstance(old, dict) and isinstance(new, dict):
        # Configs of two kinds have different fields: report the kind.
        for name in sorted(old.keys() & new.keys()):
            yield from _differences(f"{path}.{name}", old[name], new[name])
    elif isinstance(old, list) and isinstance(new, list):
        if len(old) != len(new):
            yield f"number of {path}", len(old), len(new)
        for index, pair in enumerate(zip(old, new, strict=False)):
            yield from _differences(f"{path}[{index}]", *pair)
    elif old != new:
        yield path, old, new


def _lookup(data: dict[str, Any], path: str) -> Any:
    value: Any = data
    for name in path.split("."):
        value = value.get(name)  # a config of another kind has other fields
    return value
