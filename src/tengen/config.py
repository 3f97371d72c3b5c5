"""Strict configs: frozen dataclasses that convert to and from JSON.

A component's config is in the component's package and looks like this::

    @dataclass(frozen=True, kw_only=True)
    class SearchConfig:
        \"\"\"Settings of one search.\"\"\"

        num_simulations: int = 64
        \"\"\"Simulations per move, at least 1.\"\"\"

        def __post_init__(self) -> None:
            check(self.num_simulations >= 1, "num_simulations", self.num_simulations,
                  "must be at least 1; raise it")

A config with ``Literal`` fields also calls ``check_literals(self)`` in
``__post_init__``; ranges are declared with their fields (``tengen.bounds``). Field
types may be bool, int, float, str, ``X | None``, ``Literal[...]``, ``tuple[X, ...]``,
``tuple[X, Y]``, ``dict[str, X]``, another config, a union of configs that differ in a
``Literal`` field named ``kind``, and an open family of configs
(``tengen.open_config``).
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import json
import math
import textwrap
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from tengen.errors import UsageError, did_you_mean
from tengen.open_config import OpenConfig

T = TypeVar("T")


def check(ok: bool, name: str, value: object, rule: str) -> None:
    """Raises UsageError ``<name> (<value>) <rule>`` if ``ok`` is false.

    Args:
        ok: Whether the rule holds.
        name: The field's name in the config.
        value: The field's value.
        rule: The rule and the advice, such as ``must be positive; raise it``.
    """
    if not ok:
        raise UsageError(f"{name} ({value}) {rule}")


def check_range(
    name: str, value: float, low: float, high: float, advice: str = "change it"
) -> None:
    """Raises UsageError unless ``low <= value <= high``; see ``check``."""
    check(low <= value <= high, name, value, f"must be {low} to {high}; {advice}")


def check_whole(name: str, value: object, low: int, high: int) -> None:
    """Raises UsageError unless ``value`` is an integer from ``low`` to ``high``."""
    if not isinstance(value, int):
        check(False, name, value, "must be a whole number; use an int")
        return
    check_range(name, value, low, high)


def check_literals(cfg: Any) -> None:
    """Raises UsageError if a ``Literal`` field of ``cfg`` has a value outside its type.

    Call this in ``__post_init__``, because Python does not check Literals.
    """
    for name, kind in field_types(type(cfg)).items():
        if get_origin(kind) is Literal:
            _check_literal(get_args(kind), getattr(cfg, name), name)


def to_dict(cfg: Any) -> dict[str, Any]:
    """Returns ``cfg`` as plain JSON values; tuples become lists.

    ``from_dict(type(cfg), to_dict(cfg)) == cfg`` holds for every config.
    """
    return {f.name: _plain(getattr(cfg, f.name)) for f in dataclasses.fields(cfg)}


def fill_native(cfg: Any, native: T, **derived: Any) -> T:
    """Sets every field of ``native``, a C++ settings object, and returns ``native``.

    Args:
        cfg: The config with the same settings.
        native: A new settings object; a field takes its value from ``derived``, or else
            from the config's field of the same name.
        **derived: Values of fields that the config lacks or defines differently.
    """
    for name in vars(type(native)):
        if not name.startswith("_"):
            value = derived[name] if name in derived else getattr(cfg, name)
            setattr(native, name, value)
    return native


def from_dict(cls: type[T], data: Mapping[str, Any], where: str = "") -> T:
    """Builds a config from JSON values; missing keys take their defaults.

    Args:
        cls: A dataclass.
        data: The values of the fields by name; nested configs are mappings.
        where: The dotted path of ``data`` in its file; it prefixes names in messages.

    Raises:
        UsageError: A key is unknown, is missing or has the wrong type, or the config's
            own checks reject a value.
    """
    if not isinstance(data, Mapping):
        raise UsageError(
            f"{where or cls.__name__} ({shown(data)}) must be a mapping of fields; "
            f"give {{name: value}}"
        )
    kinds = field_types(cls)
    for key in data:
        if key not in kinds:
            raise UsageError(
                f"{join(where, str(key))} ({shown(data[key])}) is not a known key; "
                f"{did_you_mean(str(key), kinds)}"
            )
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):  # type: ignore[arg-type]
        path = join(where, field.name)
        if field.name in data:
            values[field.name] = _convert(kinds[field.name], data[field.name], path)
        elif _is_required(field):
            raise UsageError(f"{path} (nothing) is required; give it a value")
    try:
        return cls(**values)
    except UsageError as error:
        raise _located(error, where) from None


def field_docs(cls: type) -> dict[str, str]:
    """Returns the docstring of each field of a config, by name, joined to one line.

    Blocks while it reads the source file.
    """
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if not dataclasses.is_dataclass(base):
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(base)))
        body = typing.cast(ast.ClassDef, tree.body[0]).body
        for statement, below in itertools.pairwise(body):
            match statement, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    docs[name] = " ".join(text.split())
    return docs


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    return value


# Cache of field types, whose lookup would take three quarters of the time to parse a
# config. Fast runs parse a model's meta.json several times a second.
_known_types: dict[type, dict[str, Any]] = {}


def field_types(cls: type) -> dict[str, Any]:
    """Returns the type of each field of a config, by name."""
    if cls not in _known_types:
        hints = typing.get_type_hints(cls)
        _known_types[cls] = {f.name: hints[f.name] for f in dataclasses.fields(cls)}
    return _known_types[cls]


def _is_required(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def join(where: str, name: str) -> str:
    """Returns the dotted path of a name below ``where``, which may be empty.

    A long or unprintable name is shortened and escaped for messages.
    """
    if len(name) > 60 or not name.isprintable():
        name = shown(name)
    return f"{where}.{name}" if where else name


def shown(value: object) -> str:
    """Returns ``value`` as text for a message, at most 60 characters."""
    text = json.dumps(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _located(error: UsageError, where: str) -> UsageError:
    """Returns an error of ``__post_init__`` with ``where`` before the field's name."""
    return UsageError(f"{where}.{error}" if where else str(error))


def _refuse(path: str, value: object, expected: str) -> typing.NoReturn:
    raise UsageError(f"{path} ({shown(value)}) must be {expected}; change it")


def _convert(kind: Any, value: Any, path: str) -> Any:
    """Returns ``value`` converted to ``kind``; raises UsageError if that fails."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        return _convert_union(args, value, path)
    if origin is Literal:
        _check_literal(args, value, path)
        return value
    if origin is tuple:
        return _convert_tuple(args, value, path)
    if origin is dict:
        if not isinstance(value, Mapping):
            _refuse(path, value, "a mapping")
        return {
            str(key): _convert(args[1], item, join(path, str(key)))
            for key, item in value.items()
        }
    if dataclasses.is_dataclass(kind):
        if isinstance(value, typing.cast(type, kind)):
            return value
        return from_dict(typing.cast(type, kind), value, path)
    if (family := family_of(kind)) is not None:
        if isinstance(value, family):
            return value
        if not isinstance(value, Mapping):
            _refuse(path, value, "a mapping of fields with a kind")
        chosen = family.of_kind(value.get("kind"), join(path, "kind"))
        return from_dict(chosen, value, path)
    return _convert_scalar(kind, value, path)


def family_of(kind: Any) -> type[OpenConfig] | None:
    """Returns the open family of a field's type; None for other types."""
    if isinstance(kind, type) and issubclass(kind, OpenConfig):
        return kind
    return None


def _check_literal(args: Sequence[Any], value: Any, path: str) -> None:
    # Compare types too, because True == 1 in Python.
    if any(value == arg and type(value) is type(arg) for arg in args):
        return
    if isinstance(value, str) and all(isinstance(arg, str) for arg in args):
        raise UsageError(
            f"{path} ({shown(value)}) is not known; {did_you_mean(value, args)}"
        )
    _refuse(path, value, "one of " + ", ".join(map(shown, args)))


def _convert_scalar(kind: Any, value: Any, path: str) -> Any:
    if kind is types.NoneType and value is None:
        return None
    if kind is bool and isinstance(value, bool):
        return value
    if kind is int and isinstance(value, int) and not isinstance(value, bool):
        return value
    if kind is float and isinstance(value, (int, float)) and type(value) is not bool:
        try:
            number = float(value)
        except OverflowError:  # an integer with hundreds of digits
            number = math.inf
        if not math.isfinite(number):
            _refuse(path, value, "a finite number")
        return number
    if kind is str and isinstance(value, str):
        return value
    words = {
        types.NoneType: "null",
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "text",
    }
    if kind not in words:
        raise TypeError(f"{path}: a config field cannot be of type {kind!r}")
    _refuse(path, value, words[kind])


def _convert_tuple(args: tuple[Any, ...], value: Any, path: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        _refuse(path, value, "a list")
    if len(args) == 2 and args[1] is Ellipsis:
        kinds: Sequence[Any] = [args[0]] * len(value)
    else:
        kinds = args
    if len(kinds) != len(value):
        _refuse(path, value, f"a list of {len(kinds)} values")
    return tuple(
        _convert(kind, item, f"{path}[{index}]")
        for index, (kind, item) in enumerate(zip(kinds, value, strict=True))
    )


def _convert_union(args: tuple[Any, ...], value: Any, path: str) -> Any:
    if value is None and types.NoneType in args:
        return None
    configs: list[Any] = [arg for arg in args if dataclasses.is_dataclass(arg)]
    if any(isinstance(value, config) for config in configs):
        return value
    if configs and isinstance(value, Mapping):
        chosen = config_of_kind(configs, value, path)
        return from_dict(chosen, value, path)
    rest = [arg for arg in args if arg is not types.NoneType]
    if len(rest) == 1:
        return _convert(rest[0], value, path)
    for arg in rest:
        if arg not in configs:
            try:
                return _convert(arg, value, path)
            except UsageError:
                continue
    names = (getattr(arg, "__name__", str(arg)) for arg in args)
    _refuse(path, value, "one of " + ", ".join(names))


def config_of_kind(
    configs: Sequence[Any], value: Mapping[str, Any], path: str
) -> type[Any]:
    """Returns the config class for the ``kind`` in ``value``; the first by default."""
    if len(configs) == 1:
        return typing.cast("type[Any]", configs[0])
    known: dict[str, type[Any]] = {
        name: config
        for config in configs
        for name in get_args(field_types(config)["kind"])
    }
    kind = value.get("kind", get_args(field_types(configs[0])["kind"])[0])
    if not isinstance(kind, str) or kind not in known:
        raise UsageError(
            f"{join(path, 'kind')} ({shown(kind)}) is not known; "
            f"{did_you_mean(str(kind), known)}"
        )
    return known[kind]
