"""Applies ``--set path.to.field=value`` to a config."""

from __future__ import annotations

import ast
import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, get_args, get_origin

from tengen.config import (
    config_of_kind,
    family_of,
    field_types,
    from_dict,
    join,
    shown,
    to_dict,
)
from tengen.errors import UsageError, did_you_mean

T = TypeVar("T")


def override(cfg: T, settings: Sequence[str]) -> T:
    """Returns ``cfg`` with ``--set`` settings applied and checked, in order.

    Args:
        cfg: A config.
        settings: ``path.to.field=value``. A value is parsed as JSON, else as a Python
            literal, else taken as text. Setting the ``kind`` of a union selects that
            config with its defaults, so it must come first.

    Raises:
        UsageError: A setting is malformed, unknown or rejected.
    """
    data: dict[str, Any] = to_dict(cfg)
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path:
            raise UsageError(
                f"setting ({setting}) must be path.to.field=value; rewrite it"
            )
        _assign(type(cfg), data, path.strip(), _parse(text.strip()))
    return from_dict(type(cfg), data)


def _parse(text: str) -> Any:
    for read in (json.loads, ast.literal_eval):
        try:
            return read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue  # too many nested brackets raise MemoryError or RecursionError
    return text


def _assign(cls: type, data: dict[str, Any], path: str, value: Any) -> None:
    """Sets the field ``path`` to ``value`` in ``data``, a ``cls`` as JSON values."""
    names = path.split(".")
    config: Any = cls
    for depth, name in enumerate(names):
        here = ".".join(names[: depth + 1])
        kinds = field_types(config) if config is not None else {}
        if config is not None and name not in kinds:
            deeper = _paths_to(name, data, ".".join(names[:depth]))
            advice = f'did you mean "{deeper[0]}"?' if len(deeper) == 1 else ""
            raise UsageError(
                f"{here} ({shown(value)}) is not a known key; "
                f"{advice or did_you_mean(name, kinds)}"
            )
        if depth == len(names) - 1:
            if name == "kind" and value not in get_args(kinds.get("kind")):
                data.clear()  # another config of the union, with its own defaults
            data[name] = value
            return
        if data.get(name) is None:
            data[name] = {}
        if not isinstance(data[name], dict):
            raise UsageError(
                f"{path} ({shown(value)}) must name a field; {here} has no fields"
            )
        config = _nested_config(kinds.get(name), data[name], here)
        data = data[name]


def _paths_to(name: str, data: Mapping[str, Any], where: str) -> list[str]:
    """Returns the paths of all fields called ``name`` in ``data`` at ``where``."""
    found = []
    for key, value in data.items():
        path = join(where, key)
        if isinstance(value, dict):
            found += _paths_to(name, value, path)
        if key == name:
            found.append(path)
    return found


def _nested_config(kind: Any, data: Mapping[str, Any], path: str) -> type | None:
    """Returns the config class of ``data`` at ``path``, or None if it is a dict."""
    if not dataclasses.is_dataclass(kind) and (family := family_of(kind)) is not None:
        return family.of_kind(data.get("kind"), join(path, "kind"))
    members = (kind, *get_args(kind))
    configs = [member for member in members if dataclasses.is_dataclass(member)]
    if not configs or get_origin(kind) is dict:
        return None
    return config_of_kind(configs, data, path)
