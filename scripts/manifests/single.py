"""Overlays as one file each, for whoever applies a file and not a folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from scripts.manifests.overlay import K8S, open_overlay

__all__ = ["file_of", "rendered_text"]

_SINGLE = re.compile(r"mpijob-(\d+)gpu-(\d+)cpu")


def file_of(name: str) -> Path | None:
    """Returns the file of an overlay; None: it has none."""
    match = _SINGLE.fullmatch(name)
    return K8S / f"job_{match[1]}GPU_{match[2]}CPU.yaml" if match else None


def rendered_text(name: str) -> str:
    """Returns the objects of an overlay as YAML, with a line that says whose they are.

    Raises:
        UsageError: The overlay cannot be rendered.
    """
    overlay = open_overlay(name, kubectl=False)
    head = (
        f"# The render of overlays/{name}: change that, and then run\n"
        f"# scripts/check_manifests.py --write\n"
    )
    texts = [
        yaml.dump(one, Dumper=_Dumper, sort_keys=False, width=100)
        for one in overlay.documents.values()
    ]
    return head + "---\n".join(texts)


class _Dumper(yaml.SafeDumper):
    """Writes scripts as they are, and nothing by reference."""

    def ignore_aliases(self, data: Any) -> bool:
        """Returns True: a reader need not look for what a name stands for."""
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
