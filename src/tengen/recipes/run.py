"""``tengen.train``: one call that trains an agent, or resumes its run."""

from __future__ import annotations

import dataclasses
import os
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from threading import Timer
from typing import Any

from tengen.config import check, to_dict
from tengen.errors import TengenError, UsageError
from tengen.games import allow, is_game, task_words
from tengen.inference import check_machine
from tengen.launch import (
    Budget,
    RunJournal,
    check_doors,
    check_launch,
    launcher_of,
    train_by,
)
from tengen.observe import (
    EventWriter,
    View,
    lighter_learning,
    make_view,
    open_charts,
    read_progress,
)
from tengen.observe.curves.charts import check_wandb
from tengen.observe.roles import needed_roles
from tengen.own_process import is_own_process
from tengen.recipes.finale import (
    farewell,
    final_match,
    match_line,
    why_unlearned,
)
from tengen.recipes.growth import grows_by_recipe
from tengen.recipes.registry import make_config, recipe_of
from tengen.recipes.resolve import (
    check_arguments,
    check_budget,
    check_typed_cluster,
    fresh_config,
    identity,
    launch_for,
    resolved,
    sets,
    with_arguments,
)
from tengen.roles import (
    RUN_LOCK,
    RunConfig,
    StopListener,
    asked_generations,
    change_config,
    check_devices,
    check_room,
    checked_book,
    checked_imported,
    checked_initial_model,
    checked_source,
    checked_target,
    config_changes,
    has_calls,
    keep_book,
    learned_steps,
    move_run,
    note_call,
    possible_inference,
    read_config,
    with_asked_generations,
    write_config,
)
from tengen.run import (
    RunDirectory,
    check_no_mirror,
    check_writable,
    usable_threads,
)

__all__ = ["train_task"]

_INTERRUPTED = 130
# A command that is refused says nothing else, as long as that is known at once.
_PATIENCE_S = 0.25
# The live view has hidden it.
_SHOW_CURSOR = b"\033[?25h\n"


def train_task(
    task: str,
    *,
    agent: str | None = None,
    recipe: str | None = None,
    launch: str | None = None,
    actors: int | None = None,
    minutes: float | None = None,
    games: int | None = None,
    frames: int | None = None,
    out: Path | str | None = None,
    seed: int | None = None,
    threads: int | None = None,
    devices: str | None = None,
    settings: Sequence[str] = (),
) -> dict[str, Any]:
    """Trains a task and returns the result; resumes the run that ``out`` holds.

    Blocks until the budget is spent; Ctrl-C, SIGTERM and ``tengen stop`` end it
    early with everything saved. A second Ctrl-C kills the roles, saved or not, and
    raises KeyboardInterrupt; it ends the process of ``tengen train`` at once.

    Args:
        task: A game or an environment. ``module:Class`` is imported.
        agent: The algorithm; None for the task's own.
        recipe: The recipe; None for the task's own.
        launch: ``inline``, ``local``, ``ray`` or ``mpi``; with ``mpi`` only the first
            rank of ``mpirun`` returns. None: ``local`` on a GPU, with ``actors``, with
            several actors in the run, or with ``launch.listen``; else ``inline``.
        actors: Processes that step environments; None for as many as the run has, one
            in a new run.
        minutes: Wall time of this call from its first turn of work on; the recipe's
            where no budget is given. The CPU time of all calls together decides when
            the network grows. A new run's config is made for this machine's cores, and
            where roles take turns, generations get smaller if few of them would fit.
        games: Games of this call, in whole generations. A new run's config is then the
            same on any machine. 0 writes the config and starts nothing, for roles that
            are started one by one.
        frames: Environment steps of this call, in whole turns of the actors. 0 writes
            the config and starts nothing, as with games.
        out: The run directory, ``runs/TASK`` by default.
        seed: Seed of a new run.
        threads: Cores to use, at most those of the machine; all by default.
        devices: ``cpu`` or GPUs such as ``cuda:0,cuda:1``: self-play uses all of
            them, then the learner the first. By default the run's devices, or a GPU
            where there is one.
        settings: ``a.b=v`` changes of the config.

    Returns:
        ``out``, ``reason`` (why it ended), ``exit_code`` (1 where the budget ended
        before the learner made a step) and the last progress.

    Raises:
        UsageError: An argument, the config or the directory is refused.
        RunError: A role failed for good, or the disk refuses.
        KeyboardInterrupt: A second Ctrl-C.
    """
    only_makes = games == 0 or frames == 0
    launcher = None if launch is None else launcher_of(launch)
    if launcher is not None:
        launcher.join(threads)
    check_arguments(launch, actors, minutes, games, frames)
    with ExitStack() as locks:
        view = locks.enter_context(make_view(f"tengen train {task}", sys.stdout))
        check(out != "", "out", "", "must name a directory; use . for this one")
        num_threads = usable_threads(threads)
        path = Path(out) if out is not None else Path("runs") / task.replace(":", "_")
        allow(task)
        # An environment's spaces are asked for.
        what = "checking the config" if is_game(task) else "making the environment"
        checking = Timer(_PATIENCE_S, view.starting, [what])
        checking.daemon = True
        locks.callback(checking.cancel)
        if not (only_makes and is_game(task)):
            checking.start()
        run = RunDirectory(path)
        check_writable(run.path)
        check_no_mirror(run)
        run.check_new()
        if agent is None and not run.is_new:
            # To resume a run, its agent need not be named again.
            kept = read_config(run)
            recipe = recipe or recipe_of(kept, task)
            agent = kept.agent.kind if kept.task == task else None
        # What cannot work is refused before anything is written.
        settings = with_arguments(settings, actors, seed)
        if run.is_new:
            fresh = fresh_config(
                *(task, agent, recipe, settings),
                minutes=minutes,
                games=games,
                frames=frames,
                num_threads=num_threads,
            )
        else:
            fresh = make_config(task, agent, recipe)
        # The role export may be writing its measurements to run.json now.
        changing = None if run.is_new else run.lock(RUN_LOCK, wait=True)
        if changing is not None:
            locks.enter_context(changing)
        found = None if run.is_new else read_config(run)
        known = None if found is None else with_asked_generations(run, found)
        # Stages that the user sets are kept.
        is_grown = False
        if known is not None and not sets(settings, "agent.stages"):
            before, known = known, grows_by_recipe(run, known, fresh)
            is_grown = known != before
        config = _resolve(run, known, fresh, settings)
        check_budget(config, games, frames)
        config = checked_source(config)
        config = checked_initial_model(config, run)
        config = checked_imported(config)
        is_typed = sets(settings, "agent.target.opponent")
        config = checked_target(config, run, known, is_typed=is_typed)
        config, book = checked_book(config, run)
        # On a cluster each role looks for its GPUs when it begins.
        is_here = not (only_makes or (launcher is not None and launcher.package))
        config = move_run(run, config, devices, is_here=is_here)
        if is_here:
            check_devices(config)
        check_wandb(config.observe)
        if sets(settings, "inference"):
            check_machine(config.inference)
        else:
            possible = possible_inference(run, config.inference)
            config = dataclasses.replace(config, inference=possible)
        config.agent.check_task(config)
        launch = launch or launch_for(config, has_actors=actors is not None)
        if known is not None and launch == "ray" and not only_makes:
            check_typed_cluster(known, settings, run.path)
        launcher = launcher_of(launch)
        check_launch(launch, config)
        acting = config.agent.schedule(config).acting
        has_count = sets(settings, f"launch.roles.{acting}.count")
        config = launcher.fit(config, keeps_count=has_count)
        room = ""
        if not (only_makes or launcher.package):  # else where the learner begins
            room = check_room(config, run, at_once=not launcher.takes_turns)
        # A run that trains already uses its ports; taking its lock below names it.
        if not only_makes and (run.is_new or run.lock_holder("train") is None):
            check_doors(launch, config)
        sizes = [f"agent.actor.{name}" for name in config.agent.generation_sizes()]
        is_set = sets(settings, *sizes, "store.min_rows")
        generation = asked_generations(run, config, is_set=is_set)
        checking.cancel()
        run = RunDirectory.create_or_resume(path)
        locks.enter_context(run.lock("train"))
        if book is not None:
            keep_book(run, book, config.agent.book)
        write_config(
            run,
            config,
            keeps_asked=not sets(settings, "inference"),
            generation=generation,
        )
        if is_grown:
            view.message(
                f"{run.path} is of an earlier version, and its network grows from now "
                "on; --set 'agent.stages=[]' keeps the network as it is"
            )
        if changing is not None:
            changing.release()
        run.write_code()
        run.clear_stop()
        # Also where only the config is written, which roles by themselves train by.
        if config.agent.iterations or has_calls(run):
            note_call(run, to_dict(config), trains=not only_makes)
        if only_makes:
            view.close()
            return _made(run, None if known is None else config_changes(known, config))
        models = config.agent.iterations or None
        if minutes is None and games is None and frames is None and models is None:
            minutes = config.minutes
        budget = Budget(
            minutes=minutes,
            games=games,
            frames=frames,
            models=models,
            fits_generations=generation is not None,
        )
        if room:
            view.message(room)
        if config.agent.iterations and not config.agent.target.opponent:
            view.message(
                "agent.target.opponent is empty, so that models are trained and meet "
                "nobody; set it now, or in a later call"
            )
        return _train(run, config, budget, num_threads, launch, view)


def _resolve(
    run: RunDirectory,
    known: RunConfig | None,
    fresh: RunConfig,
    settings: Sequence[str],
) -> RunConfig:
    """Returns the run's config with this call's settings; writes nothing.

    Args:
        run: The run.
        known: The run's config; None for a new run.
        fresh: The recipe's config.
        settings: The call's settings.
    """
    if known is None:
        return resolved(fresh, settings)
    given, theirs = identity(fresh), identity(known)
    for name in ("task", "agent"):
        wanted, kept_name = given[name], theirs[name]
        if wanted != kept_name:
            raise UsageError(
                f"{name} ({wanted}) must be {kept_name}, that of the run at "
                f"{run.path}; choose another --out"
            )
    return change_config(known, settings)


def _train(
    run: RunDirectory,
    config: RunConfig,
    budget: Budget,
    num_threads: int,
    launch: str,
    view: View,
) -> dict[str, Any]:
    steps_before = learned_steps(run)
    last = read_progress(run)
    charts = open_charts(run)
    events = EventWriter(run, "train", run.new_incarnation("train"), charts)
    try:
        with StopListener(run, on_second=_leave) as stop, closing(view):
            journal = RunJournal(
                view,
                events,
                acting=config.agent.schedule(config).acting,
                last=last,
                lighter=lighter_learning(to_dict(config)),
            )
            train_by(
                launch, config, run, budget, journal, stop, num_threads=num_threads
            )
            events.write("end", reason=stop.reason or "budget")
            match = final_match(
                config,
                run,
                num_threads=num_threads,
                progress=journal.progress,
                stop=stop.event.is_set,
                minutes=budget.minutes,
            )
            if match is not None:
                events.write("match", **match.to_json())
            reason = stop.reason or "budget"
    except TengenError as error:
        if stop.is_urgent:
            raise KeyboardInterrupt from error  # it tells of a role that was killed
        raise
    finally:
        events.close()
    if stop.is_urgent:
        raise KeyboardInterrupt
    # A live view draws its panel once more as it closes; print these lines below it.
    if match is not None and config.agent.rating is not None:
        view.message(match_line(match, config.agent.rating, budget.minutes))
    # As saved: the report of the last turn may not have come.
    unlearned = ""
    if not _has_models(run, budget) and learned_steps(run) <= steps_before:
        unlearned = why_unlearned(budget, journal, reason)
    view.message(farewell(config, run, reason, journal, unlearned))
    return {
        "out": str(run.path),
        "reason": reason,
        "exit_code": _exit_code(reason, unlearned),
        **({} if match is None else {"match": match.to_json()}),
        **journal.progress_now.to_dict(),
    }


def _has_models(run: RunDirectory, budget: Budget) -> bool:
    """Returns whether the run has all the models that it is to have."""
    return budget.models is not None and (run.models.latest() or 0) >= budget.models


def _leave() -> None:
    """Ends this process at once, for a role that hangs before it has saved.

    The roles notice that: each saves what it can, and ends within seconds. The process
    of somebody's program is not ended, so there the roles are killed.
    """
    if not is_own_process():
        from tengen.launch.process import kill_stopping  # it runs them, so it is here

        kill_stopping()
        return
    if sys.stdout.isatty():
        os.write(sys.stdout.fileno(), _SHOW_CURSOR)
    os.write(2, b"tengen: interrupted again; roles that hang are ended unsaved\n")
    os._exit(_INTERRUPTED)


def _exit_code(reason: str, unlearned: str) -> int:
    """Returns the call's: 1 where its budget ended before an optimizer step."""
    if reason == "interrupted":
        return _INTERRUPTED
    return int(reason == "budget" and bool(unlearned))


def _made(run: RunDirectory, changes: list[str] | None) -> dict[str, Any]:
    """Tells the roles of a new run, or what this call changed in an existing run."""
    roles = needed_roles(run.read_run())
    names = ", ".join(f"tengen {name}" for name in roles)
    report = {"out": str(run.path), "exit_code": 0}
    if changes is None:
        typed = task_words(read_config(run).task)
        print(f"{run.path} is made; start {names} on it{typed}")
        return {**report, "reason": "made"}
    if changes:
        what = ", ".join(changes)
        print(
            f"{run.path} is changed, {what}; roles use the change from their next "
            "turn on"
        )
    else:
        print(f"{run.path} is as it was, nothing is changed; {names} go on with it")
    return {
        **report,
        "reason": "changed" if changes else "unchanged",
        "changes": changes,
    }
