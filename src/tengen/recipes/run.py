"""``tengen.train``: one call that trains an agent, or resumes its run."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

from tengen.config import to_dict
from tengen.errors import TengenError
from tengen.games import allow, is_game, task_words
from tengen.launch import LAUNCHERS, Budget, RunJournal, launcher_of, train_by
from tengen.observe import (
    EventWriter,
    View,
    lighter_learning,
    make_view,
    open_charts,
    read_progress,
)
from tengen.observe.roles import needed_roles
from tengen.own_process import is_own_process
from tengen.recipes.call import Call
from tengen.recipes.finale import (
    farewell,
    final_match,
    match_line,
    why_unlearned,
)
from tengen.roles import (
    RUN_LOCK,
    RunConfig,
    StopListener,
    config_changes,
    learned_steps,
)
from tengen.run import RunDirectory, usable_threads

__all__ = [
    "add_arguments",
    "train",
    "train_task",
]

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
    if launch is not None:
        launcher_of(launch).join(threads)
    call = Call(
        task=task,
        agent=agent,
        recipe=recipe,
        launch=launch,
        actors=actors,
        minutes=minutes,
        games=games,
        frames=frames,
        out=out,
        seed=seed,
        threads=threads,
        devices=devices,
        settings=settings,
    )
    with ExitStack() as locks:
        view = locks.enter_context(make_view(f"tengen train {task}", sys.stdout))
        allow(task)
        # What cannot work is refused before anything is written.
        with _telling(call, view), ExitStack() as changing:
            num_threads = usable_threads(threads)
            run = call.open()
            if run.is_new:
                config = call.new_config(num_threads)
            else:
                # The role export may be writing its measurements to run.json now.
                changing.enter_context(run.lock(RUN_LOCK, wait=True))
                config = call.changed_config(run)
            config = call.checked(config, run)
            run = RunDirectory.create_or_resume(run.path)
            locks.enter_context(run.lock("train"))
            call.publish(config, run)
        for line in call.told:
            view.message(line)
        if call.only_makes:
            view.close()
            return _made(run, call.known, config)
        return _train(run, config, call, num_threads, view)


@contextmanager
def _telling(call: Call, view: View) -> Iterator[None]:
    """Shows what a call does while it looks at its config, unless that is quick."""
    is_of_game = is_game(call.task)
    # An environment's spaces are asked for.
    what = "checking the config" if is_of_game else "making the environment"
    checking = Timer(_PATIENCE_S, view.starting, [what])
    checking.daemon = True
    if not (call.only_makes and is_of_game):
        checking.start()
    try:
        yield
    finally:
        checking.cancel()


def _train(
    run: RunDirectory,
    config: RunConfig,
    call: Call,
    num_threads: int,
    view: View,
) -> dict[str, Any]:
    budget = call.budget(config)
    steps_before = learned_steps(run)
    last = read_progress(run)
    charts = open_charts(run)
    events = EventWriter(run, "train", run.new_incarnation("train"), charts)
    try:
        with StopListener(run, on_second=_leave) as stop, closing(view):
            journal = RunJournal(
                view,
                events,
                acting=config.schedule.acting,
                last=last,
                lighter=lighter_learning(to_dict(config)),
            )
            train_by(
                str(call.launch),
                *(config, run, budget, journal, stop),
                num_threads=num_threads,
            )
            events.write("end", reason=stop.reason or "budget")
            match = final_match(
                config,
                run,
                num_threads=num_threads,
                progress=journal.progress,
                stop=stop.event.is_set,
                minutes=budget.minutes,
                clock=time.monotonic,
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
    if match is not None and config.games is not None:
        view.message(match_line(match, config.games.rating, budget.minutes))
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


def _made(
    run: RunDirectory, before: RunConfig | None, config: RunConfig
) -> dict[str, Any]:
    """Tells the roles of a new run, or what this call changed in an existing run."""
    names = ", ".join(f"tengen {name}" for name in needed_roles(run.read_run()))
    report = {"out": str(run.path), "exit_code": 0}
    if before is None:
        print(f"{run.path} is made; start {names} on it{task_words(config.task)}")
        return {**report, "reason": "made"}
    changes = config_changes(before, config)
    if changes:
        print(
            f"{run.path} is changed, {', '.join(changes)}; roles use the change from "
            "their next turn on"
        )
    else:
        print(f"{run.path} is as it was, nothing is changed; {names} go on with it")
    reason = "changed" if changes else "unchanged"
    return {**report, "reason": reason, "changes": changes}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen train``."""
    parser.add_argument(
        "task",
        help="what to train: gomoku/9, connect4, openspiel/hex, CartPole-v1, ..., or "
        "module:Class for a game or an environment of your own",
    )
    parser.add_argument(
        "--agent", help="the algorithm; see tengen recipes (default: the task's)"
    )
    parser.add_argument(
        "--recipe",
        help="where the settings come from; see tengen recipes (default: the task's)",
    )
    parser.add_argument(
        "--launch",
        choices=list(LAUNCHERS),
        help="inline: roles take turns; local: all roles at once, in "
        "processes of this machine; ray: on a Ray cluster; mpi: as the ranks of "
        "mpirun -n N, which share the run directory (local with a GPU, --actors, "
        "several actors in the run or launch.listen, else inline)",
    )
    parser.add_argument(
        "--actors",
        type=int,
        help="processes that step environments while the learner learns (1)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        help="wall time of this call, without its start-up; where no budget is given "
        "the recipe's",
    )
    parser.add_argument(
        "--games",
        type=int,
        help="games to play in this call; 0 only writes the run's config, for "
        "roles that are started one by one",
    )
    parser.add_argument(
        "--frames",
        type=_frames,
        help="environment steps of this call, such as 500k or 10M; a step of Atari is "
        "four frames of the emulator; 0 only writes the run's config, as with --games",
    )
    parser.add_argument(
        "--out", help="run directory, which is resumed if it holds a run (runs/TASK)"
    )
    parser.add_argument("--seed", type=int, help="seed of a new run (0)")
    parser.add_argument("--threads", type=int, help="cores to use (all)")
    parser.add_argument(
        "--devices",
        help="cpu, cuda:0 or cuda:0,cuda:1 (for a game a GPU where there is one; the "
        "code for GPUs has run on one GPU for minutes only)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="a.b=v",
        help="change one field of the config, may be repeated; tengen recipes "
        "TASK lists the fields",
    )


def train(args: argparse.Namespace) -> dict[str, Any]:
    """Runs ``tengen train`` and returns its report."""
    return train_task(
        args.task,
        agent=args.agent,
        recipe=args.recipe,
        launch=args.launch,
        actors=args.actors,
        minutes=args.minutes,
        games=args.games,
        frames=args.frames,
        out=args.out,
        seed=args.seed,
        threads=args.threads,
        devices=args.devices,
        settings=args.settings,
    )


def _frames(text: str) -> int:
    """Returns the number that ``10M`` or ``500k`` names."""
    match = re.fullmatch("([0-9]{1,15})([kMG]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text} must be a number, such as 500k or 10M"
        )
    return int(match[1]) * {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}[match[2]]
