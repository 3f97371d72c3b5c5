"""An error that is planted in a good overlay, and what must be found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from scripts.manifests.overlay import Overlay

from tests.unit.deploy.overlays import place, rendered


@dataclass(frozen=True)
class Planted:
    """An error, and what is found."""

    what: str
    overlay: str
    document: tuple[str, str]
    path: str
    """Of what holds the field that is changed, as a.b.0."""
    key: str
    value: Any
    """None removes the field."""
    found: tuple[str, ...]
    """The beginning of each line after the file: kind, name, field, value."""
    components: tuple[str, ...] = ()


def of(document: tuple[str, str], rest: str) -> tuple[str, ...]:
    return (f"{document[0]}/{document[1]} {rest}",)


def plant(planted: Planted) -> Overlay:
    """Returns the overlay with the error in it."""
    overlay = rendered(planted.overlay, *planted.components)
    document = overlay.documents[planted.document]
    holder = place(document, planted.path) if planted.path else document
    key: Any = int(planted.key) if isinstance(holder, list) else planted.key
    if planted.value is None:
        del holder[key]
    else:
        holder[key] = planted.value
    return overlay


def changed(overlay: Overlay, document: tuple[str, str], old: str, new: str) -> None:
    """Changes the command of a RayJob."""
    spec = overlay.documents[document]["spec"]
    assert old in spec["entrypoint"]
    spec["entrypoint"] = spec["entrypoint"].replace(old, new)
