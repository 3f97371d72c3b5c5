"""The config that ``tengen train`` makes from its arguments, before there is a run."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from tengen.config import check, check_range
from tengen.errors import UsageError
from tengen.inference import devices_of, has_driver
from tengen.overrides import override
from tengen.recipes.growth import made_for, with_own_net
from tengen.recipes.registry import USUAL_THREADS, make_config
from tengen.roles import RunConfig

__all__ = [
    "check_arguments",
    "check_budget",
    "check_typed_cluster",
    "fresh_config",
    "identity",
    "launch_for",
    "resolved",
    "sets",
    "with_arguments",
]

# More than any machine runs for or plays, and far below a number's limits.
_MAX_MINUTES = 10_000_000
_MAX_GAMES = 1_000_000_000
_MAX_FRAMES = 1_000_000_000_000


def with_arguments(
    settings: Sequence[str], actors: int | None, seed: int | None
) -> list[str]:
    """Returns a call's settings, with ``--actors`` and ``--seed`` added as settings."""
    first = [] if seed is None else [f"seed={seed}"]
    if actors is not None:
        first.append(f"launch.roles.actor.count={actors}")
    return [*first, *settings]


def fresh_config(
    task: str,
    agent: str | None,
    recipe: str | None,
    settings: Sequence[str],
    *,
    minutes: float | None,
    games: int | None,
    frames: int | None,
    num_threads: int = USUAL_THREADS,
) -> RunConfig:
    """Returns the recipe's config of a new run, with the network of ``--set``.

    Args:
        task: A game or an environment.
        agent: None for the task's own.
        recipe: None for the task's own.
        settings: The call's ``--set`` settings; only the network and the budget count.
        minutes: The call's budget.
        games: The call's budget in games; the config is then the same on any machine.
            With 0 the run begins with the last network of ``minutes``, or of the
            config's own minutes.
        frames: The call's budget in environment steps; 0 has the effect of 0 games.
        num_threads: Cores to use.

    Raises:
        UsageError: One of them is refused.
    """
    fresh = make_config(task, agent, recipe)
    asked = override(with_own_net(fresh, settings), settings).minutes
    if not games:
        fresh = make_config(task, agent, recipe, num_threads)
    if games == 0 or frames == 0:
        # Roles that run alone have no budget, so stages cannot begin at a share of it.
        given = asked if minutes is None else minutes
        if not sets(settings, "net", "agent.stages"):
            fresh = made_for(fresh, given * num_threads)
    return with_own_net(fresh, settings)


def resolved(fresh: RunConfig, settings: Sequence[str]) -> RunConfig:
    """Returns a new run's config, with every setting of its call applied.

    Raises:
        UsageError: A setting is refused.
    """
    config = override(fresh, settings)
    given, kept = identity(config), identity(fresh)
    for name, wanted in given.items():
        if wanted != kept[name]:
            raise UsageError(
                f"{name} ({wanted}) must not be set; give it as an argument"
            )
    return config


def identity(config: RunConfig) -> dict[str, str]:
    """Returns the fields that are given as arguments and that a run never changes."""
    return {"task": config.task, "agent": config.agent.kind, "recipe": config.recipe}


def sets(settings: Sequence[str], *fields: str) -> bool:
    """Returns whether a ``--set`` setting names one of the fields, or a part of one."""
    paths = [setting.partition("=")[0].strip() for setting in settings]
    return any(f"{path}.".startswith(f"{field}.") for path in paths for field in fields)


def check_typed_cluster(
    known: RunConfig, settings: Sequence[str], source: object
) -> None:
    """Refuses a cluster of Ray, or its environment, that only a run's file names.

    A run may come from anyone. Processes of a cluster run what the cluster sends, and
    an environment names programs and packages.

    Args:
        known: The run's config before this call.
        settings: The call's settings.
        source: The run, for the message.

    Raises:
        UsageError: ``run.json`` has one of the two, and this call does not set it.
    """
    for name in ("launch.address", "launch.runtime_env"):
        kept = getattr(known.launch, name.removeprefix("launch."))
        if kept and not sets(settings, name):
            raise UsageError(
                f"{name} ({kept}) of {source} decides which programs run, and is used "
                f"only where it is typed; add --set {shlex.quote(f'{name}={kept}')}, "
                f"or --set {name}= for none"
            )


def launch_for(config: RunConfig, *, has_actors: bool = False) -> str:
    """Returns the launcher of a run for which none is named.

    ``local`` in three cases. If acting has a device of its own, the learner need not
    wait for it. If actors are asked for, or there are several, they are processes that
    work at the same time. If ``launch.listen`` is set, other machines join while all
    roles run. Else ``inline``.

    Args:
        config: The run's.
        has_actors: Whether the call gives the number of actors.
    """
    schedule = config.agent.schedule(config)
    has_many = has_actors or config.launch.of(schedule.acting).count > 1
    can_be_at_once = not schedule.is_shared or bool(schedule.serving)
    # A new run's devices are auto; torch, which can tell, is slow to import.
    may_choose = config.inference.devices == "auto" and has_driver()
    is_on_gpu = config.inference.is_on_gpu or (
        may_choose and devices_of(config.inference) != "cpu"
    )
    wants_to = is_on_gpu or bool(config.launch.listen)
    return "local" if has_many or (can_be_at_once and wants_to) else "inline"


def check_budget(config: RunConfig, games: int | None, frames: int | None) -> None:
    """Makes sure that the budget has the unit that the run is counted in.

    Raises:
        UsageError: The budget has another unit.
    """
    schedule = config.agent.schedule(config)
    check(
        not (config.agent.learn_from and games),
        "games",
        games,
        "must be left out where no games are played; use --minutes",
    )
    check(
        games is None or not schedule.counts_frames,
        "games",
        games,
        "must be left out where environments are stepped; use --frames",
    )
    check(
        frames is None or schedule.counts_frames,
        "frames",
        frames,
        "must be left out where games are played; use --games",
    )


def check_arguments(
    launch: str | None,
    actors: int | None,
    minutes: float | None,
    games: int | None,
    frames: int | None,
) -> None:
    """Makes sure that the numbers of a call are in their ranges.

    Raises:
        UsageError: A number is out of range, or the launcher does not take so many
            actors.
    """
    check(
        launch != "inline" or actors is None or actors == 1,
        "actors",
        actors,
        "must be 1 where roles take turns; use --launch local",
    )
    check(
        minutes is None or 0 < minutes <= _MAX_MINUTES,
        "minutes",
        minutes,
        f"must be above 0 and at most {_MAX_MINUTES}; 10 suits a first run",
    )
    if games is not None:
        check_range("games", games, 0, _MAX_GAMES, "leave it out")
    if frames is not None:
        check_range("frames", frames, 0, _MAX_FRAMES, "leave it out")
