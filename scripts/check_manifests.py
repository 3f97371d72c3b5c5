#!/usr/bin/env python3
"""Checks the overlays of deploy/k8s without a cluster and without a network.

::

    python scripts/check_manifests.py                      all, with each component
    python scripts/check_manifests.py rayjob-go9           one
    python scripts/check_manifests.py rayjob-go9 --with queue-volcano
    python scripts/check_manifests.py --node cpu=32,memory=128Gi
    python scripts/check_manifests.py --crds FOLDER        by the projects' own CRDs too
    python scripts/check_manifests.py --write              the files that are renders

An error is one line: overlay, file, kind, name, field, what stands there, what must.
Exit codes: 0 all is well, 1 errors were found, 2 bad usage, or a file that is no YAML.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import NoReturn

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts.manifests.checks import CHECKS
from scripts.manifests.checks.sizes import check_node
from scripts.manifests.crds import Crds, crd_findings, read_crds, schema_differences
from scripts.manifests.finding import Finding
from scripts.manifests.overlay import K8S, ROOT, Overlay, component_sets, open_overlay
from scripts.manifests.quantities import parse_quantity
from scripts.manifests.schemas import schema_findings
from scripts.manifests.single import file_of, rendered_text

from tengen.errors import UsageError


def findings(overlay: Overlay) -> Iterator[Finding]:
    """Yields every error of an overlay.

    What ties objects together is checked only where each alone fits its schema, as
    checks read fields that a schema demands.
    """
    alone = [
        found for one in overlay.documents.values() for found in schema_findings(one)
    ]
    yield from alone
    if not alone:
        for check in CHECKS:
            yield from check(overlay)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    try:
        args = _arguments(argv)
        lines = []
        crds: Crds = {} if args.crds is None else read_crds(args.crds)
        lines += [f"schemas: {line}" for line in schema_differences(crds)]
        num_checked = 0
        if args.write:
            return _write(args.overlays)
        for name in args.overlays:
            chosen = [tuple(args.components)] if args.components else None
            for components in chosen or component_sets(name):
                overlay = open_overlay(name, components, kubectl=not args.builtin)
                found = [*findings(overlay), *crd_findings(overlay, crds)]
                if args.node is not None:
                    found += check_node(overlay, args.node)
                lines += [overlay.line(one) for one in found]
                num_checked += 1
    except UsageError as error:
        print(f"check_manifests: {error}", file=sys.stderr)
        return 2
    for line in lines:
        print(line)
    kinds = f", {len(crds)} CRDs" if crds else ""
    print(f"{num_checked} renders{kinds}: {len(lines)} errors")
    return 1 if lines else 0


def _write(names: Sequence[str]) -> int:
    """Writes overlays that have a file of their own into it, and names the files."""
    for name in names:
        path = file_of(name)
        if path is not None:
            path.write_text(rendered_text(name))
            print(os.path.relpath(path, ROOT))
    return 0


class _Parser(argparse.ArgumentParser):
    """Raises where argparse would print its usage and exit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"arguments ({message}) are not understood; try -h")


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = _Parser(prog="check_manifests", allow_abbrev=False)
    known = sorted(path.name for path in (K8S / "overlays").iterdir())
    parser.add_argument(
        "overlays",
        nargs="*",
        default=known,
        help="folders of deploy/k8s/overlays (all)",
    )
    parser.add_argument(
        "--with",
        action="append",
        dest="components",
        default=[],
        metavar="COMPONENT",
        help="of deploy/k8s/components (each that fits, one at a time)",
    )
    parser.add_argument("--node", type=_node, help="what the largest node has")
    parser.add_argument("--crds", type=Path, help="YAML files of definitions")
    parser.add_argument(
        "--builtin",
        action="store_true",
        help="render without kubectl though it is there",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="write the overlays that have a file of their own, and check nothing",
    )
    return parser.parse_args(argv)


def _node(text: str) -> Mapping[str, Decimal]:
    found = {}
    for pair in text.split(","):
        name, _, value = pair.partition("=")
        number = parse_quantity(value)
        if number is None:
            raise argparse.ArgumentTypeError(
                f"{text} must be NAME=QUANTITY, as cpu=32,memory=128Gi"
            )
        found[name] = number
    return found


if __name__ == "__main__":
    sys.exit(main())
