"""``tengen recipes``: lists the recipes, or the fields of one recipe's config."""

from __future__ import annotations

import argparse
import dataclasses
import json
import textwrap
from collections.abc import Iterator
from typing import Any

from tengen.bounds import bounds
from tengen.config import check, field_docs, to_dict
from tengen.games import allow
from tengen.games.openspiel import list_openspiel
from tengen.observe.progress_line import ProgressLine
from tengen.recipes.registry import make_config
from tengen.recipes.registry import recipes as known_recipes
from tengen.roles import RunConfig

_EVERYDAY = (
    "task",
    "recipe",
    "agent.actor.games_per_generation",
    "agent.actor.search.policy",
    "agent.actor.full_simulations",
    "agent.actor.temperature_halflife",
    "agent.actor.max_opening_plies",
    "agent.actor.num_slots",
    "agent.actor.num_envs",
    "agent.actor.turn_steps",
    "agent.stages",
    "agent.gate.kind",
    "agent.rating.final_opponent",
    "net.kind",
    "net.num_blocks",
    "net.num_channels",
    "net.auxiliary",
    "net.num_layers",
    "net.num_units",
    "net.lstm_units",
    "net.activation",
    "store.max_rows",
    "store.limiter.samples_per_row",
    "store.sampler",
    "store.max_items",
    "store.min_items",
    "store.samples_per_item",
    "learner.batch_size",
    "learner.initial_model",
    "learner.optimizer.learning_rate",
    "inference.devices",
    "inference.precision",
)
"""Fields that are shown without ``--all``, with the agent's own fields."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen recipes``."""
    parser.add_argument(
        "task",
        nargs="?",
        help="show the most important fields of this task's config, with the values "
        "of a new run on two cores",
    )
    parser.add_argument(
        "--all", action="store_true", help="with a task, show every field"
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
            print("\ntengen recipes TASK shows the settings, which --set changes.")
        return {"recipes": rows}
    allow(args.task)
    config = make_config(args.task, None, args.recipe)
    if not args.json:
        _show(config, shows_all=args.all)
    return {"config": to_dict(config)}


def _show(config: RunConfig, *, shows_all: bool) -> None:
    lines = list(_lines(config))
    shown = [line for line in lines if shows_all or _is_everyday(config, line[0])]
    for path, value, doc in shown:
        print(f"{path} = {json.dumps(value)}")
        print(textwrap.indent(textwrap.fill(doc, 84), "    "))
    if len(shown) < len(lines):
        more = len(lines) - len(shown)
        print(f"\ntengen recipes {config.task} --all shows {more} more fields.")


def _is_everyday(config: RunConfig, path: str) -> bool:
    if path in _EVERYDAY:
        return True
    # An agent of environments has few fields, which are its hyperparameters.
    return config.games is None and path.startswith("agent.") and path.count(".") == 1


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
