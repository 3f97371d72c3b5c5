"""Open config families, to which a new file adds a kind without a registry.

A family is a base class with a package. Its kinds are the dataclasses in the package's
modules that derive from the base class. Each has its own ``kind``::

    class NetConfig(OpenConfig, package="tengen.nets"): ...

    # tengen/nets/mlp.py
    @dataclass(frozen=True, kw_only=True)
    class MlpConfig(NetConfig):
        kind: Literal["mlp"] = "mlp"

A field of type ``NetConfig`` then takes ``{"kind": "mlp", ...}``. Looking up a kind
imports all modules of the package, so the modules must import quickly.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any, ClassVar

from tengen.errors import UsageError, did_you_mean


class OpenConfig:
    """Base class of config families; see the module docstring."""

    kind: str
    """Name of the config within its family."""
    _package: ClassVar[str]
    _kinds: ClassVar[dict[str, type[Any]]]

    def __init_subclass__(cls, *, package: str | None = None) -> None:
        """Creates a family if ``package`` is given; otherwise adds a kind."""
        super().__init_subclass__()
        if package is not None:
            cls._package, cls._kinds = package, {}
        elif isinstance(kind := cls.__dict__.get("kind"), str):
            cls._kinds[kind] = cls

    @classmethod
    def kinds(cls) -> dict[str, type[Any]]:
        """Returns the family's classes by kind, sorted by kind.

        The first call imports the modules of the family's package.
        """
        package = importlib.import_module(cls._package)
        for module in pkgutil.iter_modules(package.__path__):
            if not module.ispkg:
                importlib.import_module(f"{cls._package}.{module.name}")
        return dict(sorted(cls._kinds.items()))

    @classmethod
    def of_kind(cls, kind: object, path: str) -> type[Any]:
        """Returns the class of a kind.

        Args:
            kind: The kind from a file or from the user.
            path: The dotted path of the kind, for the error message.

        Raises:
            UsageError: The family has no such kind.
        """
        known = cls.kinds()
        if kind is None:
            raise UsageError(
                f"{path} (missing) must be one of {', '.join(known)}; set it"
            )
        if not isinstance(kind, str) or kind not in known:
            raise UsageError(
                f"{path} ({kind}) is not known; {did_you_mean(str(kind), known)}"
            )
        return known[kind]
