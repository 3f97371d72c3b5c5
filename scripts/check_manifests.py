#!/usr/bin/env python3
"""Writes the manifests of deploy/k8s from their table, or checks them.

::

    python scripts/check_manifests.py                  all files and renders
    python scripts/check_manifests.py --write          writes the files from the table
    python scripts/check_manifests.py --crds FOLDER    uses the projects' own CRDs

Needs the test packages, but no cluster. Without kubectl, overlays are not checked.
Exit codes: 0 success, 1 errors were found, 2 bad usage.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.manifests.files import file_texts
from scripts.manifests.renders import RENDERS, SINGLE, render, single_text
from scripts.manifests.schemas import Schemas, own_schemas, problems, read_crds
from scripts.manifests.table import ROOT


def file_problems() -> Iterator[str]:
    """Yields a line for each file that differs from the text that the table gives."""
    for path, text in file_texts().items():
        if not path.exists() or path.read_text() != text:
            shown = os.path.relpath(path, ROOT)
            yield f"file ({shown}) must be made of the table; run with --write"


def render_problems(
    name: str, components: Sequence[str], schemas: Schemas
) -> Iterator[str]:
    """Yields a line for each error in a rendered overlay and its single file."""
    objects = list(yaml.safe_load_all(render(name, components)))
    for one in objects:
        for line in problems(one, schemas):
            yield f"{'+'.join((name, *components))}: {line}"
    path = None if components else SINGLE.get(name)
    if path is not None and list(yaml.safe_load_all(path.read_text())) != objects:
        shown = os.path.relpath(path, ROOT)
        yield f"file ({shown}) must be overlay {name} rendered; run with --write"


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    parser = argparse.ArgumentParser(prog="check_manifests", allow_abbrev=False)
    parser.add_argument("--write", action="store_true", help="write the files")
    parser.add_argument("--crds", type=Path, help="folder of CRDs, in YAML")
    args = parser.parse_args(argv)
    has_kubectl = shutil.which("kubectl") is not None
    if not has_kubectl:
        print("kubectl is not installed: no overlay is rendered", file=sys.stderr)
    if args.write:
        for path, text in file_texts().items():
            path.write_text(text)
        for name, path in SINGLE.items() if has_kubectl else ():
            path.write_text(single_text(name))
        return 0
    lines = [*file_problems()]
    schemas = {**own_schemas(), **(read_crds(args.crds) if args.crds else {})}
    for name, components in RENDERS if has_kubectl else ():
        lines += render_problems(name, components, schemas)
    for line in lines:
        print(line)
    print(f"{len(lines)} errors")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
