"""The reference of the Python interface: its names, and their pages.

mkdocstrings adds the docstrings.
"""

from __future__ import annotations

import importlib
import inspect
from dataclasses import dataclass

FOLDER = "reference/python"
"""Folder of the pages in the site."""


@dataclass(frozen=True)
class Module:
    """A public module."""

    name: str
    """Import path."""
    title: str
    """Title of its page."""
    names: tuple[str, ...]
    """The module's public names, in the order of the page."""


INTERFACE = (
    Module("tengen", "Training and loading", ("train", "load")),
    Module(
        "tengen.play",
        "Players",
        ("Player", "AgentPlayer", "Analysis", "ActionAnalysis", "GrowingSearch"),
    ),
    Module(
        "tengen.games",
        "Games",
        (
            *("make", "names", "is_game", "Game", "State", "OwnGame", "check_own_game"),
            *("stone_planes", "transform_cell", "transform_planes"),
            *("GoVariety", "variants_of", "Book", "read_book"),
        ),
    ),
    Module(
        "tengen.envs",
        "Environments",
        (
            *("make", "names", "make_own", "check_own_env", "env_spec"),
            *("Env", "EnvSpec", "ActionSpec", "Step"),
        ),
    ),
    Module("tengen.tensors", "Named tensors", ("Signature", "TensorSpec", "BoardSpec")),
    Module(
        "tengen.store",
        "The store",
        (
            *("Store", "Table", "StepWriter", "Sampler", "Batch", "Replica"),
            *("TableConfig", "Column", "Selector", "RateLimits", "StoreConfig"),
            *("StoreTimeout",),
        ),
    ),
    Module("tengen.experience", "Games as tables", ("read_table",)),
    Module("tengen.report", "Curves and reports", ("curves", "write_report", "Curves")),
    Module("tengen.nets", "Networks", ("NetConfig",)),
    Module("tengen.agents", "Agents", ("EnvironmentAgent", "Agent", "NetStage")),
    Module(
        "tengen.learners",
        "Learners",
        ("Update", "LossParts", "LearnerConfig", "AdamWConfig", "SgdConfig"),
    ),
    Module(
        "tengen.losses",
        "Losses",
        (
            *("policy_cross_entropy", "value_cross_entropy", "value_squared_error"),
            *("vtrace_targets", "VtraceTargets", "baseline_loss"),
            *("gae_targets", "GaeTargets", "clipped_surrogate_loss"),
            *("n_step_targets", "double_q_values", "td_errors", "td_loss"),
            *("quantile_huber_loss", "soft_targets", "critic_loss"),
            *("make_distribution", "Distribution"),
        ),
    ),
    Module("tengen.errors", "Errors", ("TengenError", "UsageError", "RunError")),
)


def interface_pages() -> dict[str, str]:
    """Returns the pages in Markdown, by their file names."""
    rows = "".join(
        f"| [{module.title}]({_file(module)}) | `{module.name}` | "
        f"{', '.join(f'`{name}`' for name in module.names)} |\n"
        for module in INTERFACE
    )
    head = (
        "# The Python interface\n\nWhat to import and from where, made of the "
        "docstrings when this site is built. Names that begin with `_` and modules "
        "that are not here may change at any time.\n\n"
        "| page | module | names |\n|---|---|---|\n"
    )
    pages = {_file(module): _page(module) for module in INTERFACE}
    return {"index.md": head + rows, **pages}


def _file(module: Module) -> str:
    return f"{module.name.rpartition('.')[2]}.md"


def _page(module: Module) -> str:
    about = inspect.getdoc(importlib.import_module(module.name)) or ""
    first = about.split("\n\n")[0].replace("``", "`")
    parts = "".join(f"\n::: {_place(module.name, name)}\n" for name in module.names)
    return f"# {module.title}: `{module.name}`\n\n{first}\n{parts}"


def _place(module: str, name: str) -> str:
    """Returns the path of a name's definition, which may be in a submodule."""
    found = getattr(importlib.import_module(module), name)
    where = getattr(found, "__module__", module)
    return f"{where}.{getattr(found, '__qualname__', name)}"
