"""The reference of settings, generated from the config classes."""

from __future__ import annotations

import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Union, get_args, get_origin

from tengen.bounds import bounds
from tengen.config import family_of, field_docs, field_types, to_dict
from tengen.roles import RunConfig
from tengen.store import StoreConfig

FOLDER = "reference/config"
"""Folder of the pages in the site."""

# The parts of a run's config, one page per part, and other settings.
_TITLES = {
    "run": "The run as a whole",
    "agent": "Agents",
    "net": "Networks",
    "store": "What is kept of the experience",
    "learner": "The learner",
    "inference": "Inference",
    "launch": "Processes",
    "observe": "Reports",
    "tables": "A store of its own",
}

_HEAD = """# Settings

Every setting there is, made of the configs in the code when this site is built: its
type, default, range and meaning. `--set agent.actor.num_envs=32` changes one, on
`tengen train`: each part says how its names begin. A setting that is not there, or out
of its range, is refused in one line.

The default is the config's own. A recipe may have another: `tengen recipes TASK` prints
every setting of a task with the value that a run of it gets, and `RUN/run.json` has
those of a run.
`kind` says which config of several it is, `--set net.kind=transformer`.

| page | what it has |
|---|---|
"""


def config_pages() -> dict[str, str]:
    """Returns the pages in Markdown, by their file names."""
    parts = _parts()
    pages = {f"{part}.md": _page(part, found) for part, found in parts.items()}
    rows = [
        f"| [{_TITLES[part]}]({part}.md) | "
        f"{', '.join(f'`{config.__name__}`' for config in found)} |\n"
        for part, found in parts.items()
    ]
    return {"index.md": _HEAD + "".join(rows), **pages}


def documented_configs() -> set[type]:
    """Returns every config that is on a page."""
    return {config for found in _parts().values() for config in found}


def _parts() -> dict[str, dict[type, list[str]]]:
    """Returns the configs of each page, with their setting paths."""
    parts: dict[str, dict[type, list[str]]] = {part: {} for part in _TITLES}
    for config, path in _below(RunConfig, ""):
        part = path.split(".")[0].split("[")[0] or "run"
        parts[part].setdefault(config, []).append(path)
    for config, path in _below(StoreConfig, ""):
        parts["tables"].setdefault(config, []).append(path)
    return parts


def _below(
    config: type, path: str, above: tuple[type, ...] = ()
) -> Iterator[tuple[type, str]]:
    """Yields a config and all nested configs, with their paths."""
    if config in above:
        return  # a recursive type, such as a block of blocks
    yield config, path
    for name, kind in field_types(config).items():
        family = family_of(kind)
        if family is None:
            configs = _configs_of(kind)
        else:
            # A nested family is only named, because its kinds have their own page.
            configs = [] if path else [(each, "") for each in family.kinds().values()]
        for found, suffix in configs:
            inner = (f"{path}." if path else "") + name + suffix
            yield from _below(found, inner, (*above, config))


def _configs_of(kind: Any) -> list[tuple[type, str]]:
    """Returns the configs that a field may hold, and the suffix after its name."""
    if dataclasses.is_dataclass(kind):
        return [(typing.cast(type, kind), "")]
    args = get_args(kind)
    if get_origin(kind) in (Union, types.UnionType):
        return [found for arg in args for found in _configs_of(arg)]
    if get_origin(kind) is tuple:
        inner = [found for arg in args for found in _configs_of(arg)]
        return [(config, f"[]{suffix}") for config, suffix in inner]
    if get_origin(kind) in (dict, Mapping):
        return [(config, f".NAME{suffix}") for config, suffix in _configs_of(args[1])]
    return []


def _page(part: str, found: Mapping[type, list[str]]) -> str:
    sections = [_section(config, paths) for config, paths in found.items()]
    return "\n".join([f"# {_TITLES[part]}\n", *sections])


def _section(config: type, paths: list[str]) -> str:
    names = [f"{path}.NAME" if path else "NAME" for path in dict.fromkeys(paths)]
    where = "For `--set`: " + " and ".join(f"`{name}`" for name in names)
    kinds = get_args(field_types(config).get("kind"))
    if len(kinds) == 1 and paths != [""]:
        where += f", of kind `{kinds[0]}`"
    head = f"## {config.__name__}\n\n{_summary(config)}\n\n{where}.\n"
    rows = "".join(_rows(config))
    columns = "| setting | type | default | range | meaning |\n|---|---|---|---|---|\n"
    return f"{head}\n{columns}{rows}" if rows else head


def _rows(config: type) -> Iterator[str]:
    docs, ranges, kinds = field_docs(config), bounds(config), field_types(config)
    for field in dataclasses.fields(config):
        cells = (
            f"`{field.name}`",
            _type_name(kinds[field.name]),
            _default(field),
            str(ranges[field.name]) if field.name in ranges else "",
            docs[field.name].replace("``", "`"),
        )
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _summary(config: type) -> str:
    return (inspect.getdoc(config) or "").split("\n\n")[0].replace("``", "`")


def _default(field: dataclasses.Field[Any]) -> str:
    value = field.default
    if value is dataclasses.MISSING:
        if field.default_factory is dataclasses.MISSING:
            return "none, must be given"
        value = field.default_factory()
    if dataclasses.is_dataclass(value):
        return f"`{type(value).__name__}`"
    if isinstance(value, tuple):
        items = [to_dict(i) if dataclasses.is_dataclass(i) else i for i in value]
        return f"`{json.dumps(items)}`"
    return "`null`" if value is None else f"`{json.dumps(value)}`"


def _type_name(kind: Any) -> str:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Literal:
        return ", ".join(f"`{json.dumps(arg)}`" for arg in args)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_type_name, args)))
    if origin is tuple and args[-1] is Ellipsis:
        return f"list of {_type_name(args[0])}"
    if origin is tuple:
        return f"list of {len(args)}: {', '.join(map(_type_name, args))}"
    if origin is dict:
        return f"mapping to {_type_name(args[1])}"
    if kind is types.NoneType:
        return "null"
    names = {bool: "true or false", int: "whole number", float: "number", str: "text"}
    return names.get(kind) or f"`{getattr(kind, '__name__', kind)}`"
