"""``tengen recipes``: lists the recipes, or all fields of one recipe's config."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Iterator
from typing import Any

from tengen.bounds import bounds
from tengen.config import check, field_docs, to_dict
from tengen.games import allow
from tengen.games.openspiel import list_openspiel
from tengen.observe.progress_line import ProgressLine
from tengen.recipes.registry import make_config
from tengen.recipes.registry import recipes as known_recipes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen recipes``."""
    parser.add_argument(
        "task",
        nargs="?",
        help="show every field of this task's config, with the values of a new run "
        "on two cores",
    )
    parser.add_argument("--recipe", help="a recipe other than the task's default")
    parser.add_argument(
        "--openspiel",
        action="store_true",
        help="list OpenSpiel's games, and which of them can be trained",
    )


def recipes(args: argparse.Namespace) -> dict[str, Any]:
    """Prints and returns the recipes, a task's config fields, or OpenSpiel's games.

    Raises:
        UsageError: The task or the recipe is unknown, or arguments conflict.
    """
    for name, given in (("task", args.task), ("recipe", args.recipe)):
        check(
            given is None or not args.openspiel,
            name,
            given,
            "cannot be used with --openspiel, which lists all games; leave one out",
        )
    check(
        args.recipe is None or args.task is not None,
        "recipe",
        args.recipe,
        "must come with a task; tengen recipes TASK --recipe NAME shows its fields",
    )
    if args.openspiel:
        with ProgressLine("asking OpenSpiel"):
            found = list_openspiel()
        if not args.json:
            for name, verdict in found:
                print(f"{name:30} {verdict}")
        return {"openspiel": dict(found)}
    if args.task is None:
        known = known_recipes()
        rows = [
            {"name": row.name, "agent": row.agent, "tasks": row.tasks} for row in known
        ]
        if not args.json:
            for recipe in known:
                print(f"{recipe.name:16} {recipe.agent:10} {recipe.tasks}")
            print("\ntengen recipes TASK shows every field that --set can change.")
        return {"recipes": rows}
    allow(args.task)
    config = make_config(args.task, None, args.recipe)
    if not args.json:
        for path, value, doc in _lines(config):
            print(f"{path} = {value}")
            print(f"    {doc}")
    return {"config": to_dict(config)}


def _lines(config: Any, where: str = "") -> Iterator[tuple[str, Any, str]]:
    docs, ranges = field_docs(type(config)), bounds(type(config))
    for item in dataclasses.fields(config):
        value = getattr(config, item.name)
        path = f"{where}{item.name}"
        if dataclasses.is_dataclass(value):
            yield from _lines(value, f"{path}.")
        else:
            shown = to_dict(config)[item.name]
            doc = docs.get(item.name, "")
            yield (
                path,
                shown,
                f"{doc} [{ranges[item.name]}]" if item.name in ranges else doc,
            )
