"""What the tests of deploy/ share: overlays, rendered without kubectl."""

from __future__ import annotations

import copy
import dataclasses
import functools
from typing import Any

import pytest
from scripts.check_manifests import findings
from scripts.manifests.overlay import K8S, Overlay, component_sets, open_overlay

OVERLAYS = sorted(path.name for path in (K8S / "overlays").iterdir())
RENDERS = [(name, chosen) for name in OVERLAYS for chosen in component_sets(name)]


@functools.cache
def _rendered(name: str, components: tuple[str, ...]) -> Overlay:
    return open_overlay(name, components, kubectl=False)


def rendered(name: str, *components: str) -> Overlay:
    """Returns a render that a test may change.

    The config of a command is made as tengen makes it, which needs what the task needs.
    """
    if name == "raycluster-atari":
        pytest.importorskip("ale_py", reason="ale-py is not installed")
    found = _rendered(name, components)
    return dataclasses.replace(found, documents=copy.deepcopy(found.documents))


def place(value: Any, path: str) -> Any:
    """Returns what stands at ``a.b.0.c``."""
    for word in path.split("."):
        value = value[int(word)] if isinstance(value, list) else value[word]
    return value


def lines(overlay: Overlay) -> list[str]:
    return [overlay.line(one) for one in findings(overlay)]
