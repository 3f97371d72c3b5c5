"""``tengen.train``: trains an agent in a new run, or resumes a run."""

from __future__ import annotations

import argparse
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

from tengen.config import to_dict
from tengen.errors import TengenError, TengenWarning
from tengen.games import allow, is_game, task_words
from tengen.launch import (
    LAUNCHERS,
    Budget,
    RunJournal,
    TrainingCall,
    launcher_of,
    train_by,
)
from tengen.observe import (
    EventWriter,
    OnProgress,
    View,
    lighter_learning,
    make_view,
    open_charts,
    read_progress,
    watched,
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
from tengen.roles import RunConfig, StopListener
from tengen.roles.config.run_file import RUN_LOCK, config_changes
from tengen.roles.spent import learned_steps
from tengen.run import RunDirectory, usable_threads

_INTERRUPTED = 130
# Delay before a progress line, so that a command that fails fast prints only its error.
_PATIENCE_S = 0.25
# Shows the cursor again, which the live view hides.
_SHOW_CURSOR = b"\033[?25h\n"


def train_task(
    task: str,
    *,
    agent: str | None = None,
    recipe: str | None = None,
    launch: str | None = None,
    actors: int | None = None,
    minutes: float | None = None,
    cpu_seconds: float | None = None,
    games: int | None = None,
    frames: int | None = None,
    out: Path | str | None = None,
    seed: int | None = None,
    demos: Path | str | None = None,
    threads: int | None = None,
    devices: str | None = None,
    settings: Sequence[str] = (),
    on_progress: OnProgress | None = None,
) -> dict[str, Any]:
    """Trains an agent on a task and returns the result; see ``tengen.train``.

    On a second Ctrl-C the process of ``tengen train`` exits immediately.

    The arguments are those of ``tengen.train``, with a task's name and with settings as
    ``a.b=v``.

    Returns:
        ``out``, ``reason`` (why the call ended), ``exit_code`` (1 if the budget ended
        before the first learner step) and the latest progress.

    Raises:
        UsageError: An argument, the config or the directory is not valid.
        RunError: A role failed permanently, or a file operation fails.
        KeyboardInterrupt: The user pressed Ctrl-C twice.
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
        cpu_seconds=cpu_seconds,
        games=games,
        frames=frames,
        out=out,
        seed=seed,
        demos=demos,
        threads=threads,
        devices=devices,
        settings=settings,
    )
    with ExitStack() as locks:
        view = locks.enter_context(make_view(f"tengen train {task}", sys.stdout))
        allow(task)
        # Reject invalid arguments before anything is written.
        with _telling(call, view), ExitStack() as changing:
            num_threads = usable_threads(threads)
            run = call.open()
            if run.is_new:
                config = call.new_config(num_threads)
            else:
                # Wait for the lock: the role export may be writing to run.json.
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
        return _train(run, config, call, num_threads, view, on_progress)


@contextmanager
def _telling(call: Call, view: View) -> Iterator[None]:
    """Shows a progress line during the config checks, unless they finish quickly."""
    is_of_game = is_game(call.task)
    # The checks create an environment to read its spaces.
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
    on_progress: OnProgress | None,
) -> dict[str, Any]:
    budget = call.budget(config)
    seconds = budget.seconds_on(num_threads)
    steps_before = learned_steps(run)
    last = read_progress(run)
    charts = open_charts(run)
    events = EventWriter(run, "train", run.new_incarnation("train"), charts)
    try:
        with StopListener(run, on_second=_leave) as stop, closing(view):
            journal = RunJournal(
                view if on_progress is None else watched(view, on_progress, stop.end),
                events,
                acting=config.schedule.acting,
                last=last,
                lighter=lighter_learning(to_dict(config)),
            )
            training = TrainingCall(
                config=config,
                run=run,
                budget=budget,
                journal=journal,
                stop=stop,
                num_threads=num_threads,
            )
            train_by(str(call.launch), training)
            events.write("end", reason=stop.reason or "budget")
            match = final_match(
                config,
                run,
                num_threads=num_threads,
                progress=journal.progress,
                stop=stop.event.is_set,
                seconds=seconds,
                clock=time.monotonic,
            )
            if match is not None:
                events.write("match", **match.to_json())
            reason = stop.reason or "budget"
    except TengenError as error:
        if stop.is_urgent:
            raise KeyboardInterrupt from error  # the error is from a killed role
        raise
    finally:
        events.close()
    if stop.is_urgent:
        raise KeyboardInterrupt
    # Print messages after the view has closed, because closing redraws a live panel.
    if match is not None and config.games is not None:
        view.message(match_line(match, config, seconds))
    # Read learner steps from the checkpoint, because the last report may be missing.
    unlearned = ""
    if not _has_models(run, budget) and learned_steps(run) <= steps_before:
        unlearned = why_unlearned(budget, journal, reason)
    view.message(farewell(config, run, reason, journal, unlearned))
    return {
        "out": str(run.path),
        "reason": reason,
        "exit_code": _exit_code(reason, unlearned),
        **({"unlearned": unlearned} if unlearned else {}),
        **({} if match is None else {"match": match.to_json()}),
        **journal.progress_now.to_dict(),
    }


def _has_models(run: RunDirectory, budget: Budget) -> bool:
    """Returns whether the run has reached its budget of models."""
    return budget.models is not None and (run.models.latest() or 0) >= budget.models


def _leave() -> None:
    """Ends this process immediately, even if a role hangs.

    The roles detect the end of the process, save what they can, and end within seconds.
    In a user's own process, kills the roles instead.
    """
    if not is_own_process():
        from tengen.launch.process import kill_stopping  # already imported if roles run

        kill_stopping()
        return
    if sys.stdout.isatty():
        os.write(sys.stdout.fileno(), _SHOW_CURSOR)
    os.write(2, b"tengen: interrupted again; roles that hang are ended unsaved\n")
    os._exit(_INTERRUPTED)


def _exit_code(reason: str, unlearned: str) -> int:
    """Returns 130 if interrupted, 1 if the budget had no optimizer step, else 0."""
    if reason == "interrupted":
        return _INTERRUPTED
    return int(reason == "budget" and bool(unlearned))


def _made(
    run: RunDirectory, before: RunConfig | None, config: RunConfig
) -> dict[str, Any]:
    """Prints and reports the roles to start, or the settings that have changed."""
    names = ", ".join(f"tengen {name}" for name in needed_roles(run.read_run()))
    report = {"out": str(run.path), "exit_code": 0}
    if before is None:
        print(f"{run.path} is created; start {names} on it{task_words(config.task)}")
        return {**report, "reason": "made"}
    changes = config_changes(before, config)
    if changes:
        print(
            f"{run.path} is changed: {', '.join(changes)}; roles apply this from their "
            "next turn"
        )
    else:
        print(f"{run.path} is unchanged; resume it with {names}")
    reason = "changed" if changes else "unchanged"
    return {**report, "reason": reason, "changes": changes}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen train``."""
    parser.add_argument(
        "task",
        help="what to train: gomoku/9, connect4, openspiel/hex, CartPole-v1, ..., or "
        "module:Class for your own game or environment",
    )
    parser.add_argument(
        "--agent", help="the algorithm; see tengen recipes (default: the task's)"
    )
    parser.add_argument(
        "--recipe",
        help="the source of the settings; see tengen recipes (default: the task's)",
    )
    parser.add_argument(
        "--launch",
        choices=list(LAUNCHERS),
        help="inline: roles take turns; local: all roles at once, in processes on this "
        "machine; ray: on a Ray cluster; mpi: as the ranks of mpirun -n N, which share "
        "the run directory (local with a GPU, --actors, several actors in the run or "
        "launch.listen, else inline)",
    )
    parser.add_argument(
        "--actors",
        type=int,
        help="number of processes that step environments while the learner runs (1)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        help="wall time of this call, such as 10 or 0.5, without its start-up (the "
        "recipe's, if no budget is given)",
    )
    parser.add_argument(
        "--cpu-seconds",
        type=float,
        metavar="N",
        help="CPU time of all processes of this call, without their start-up",
    )
    parser.add_argument(
        "--games",
        type=int,
        help="games to play in this call; 0 only writes the run's config, for "
        "standalone roles",
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
    parser.add_argument(
        "--demos",
        metavar="FOLDER",
        help="demonstrations to learn from with --agent r2d3; see tengen demos record",
    )
    parser.add_argument("--threads", type=int, help="cores to use (all)")
    parser.add_argument(
        "--devices",
        help="cpu, cuda:0 or cuda:0,cuda:1 (for a game, a GPU if there is one; GPU "
        "support has been tested only briefly, on one GPU)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="a.b=v",
        help="change one field of the config; may be repeated; tengen recipes TASK "
        "lists the fields",
    )


def train(args: argparse.Namespace) -> dict[str, Any]:
    """Runs ``tengen train`` and returns its report."""
    report = train_task(
        args.task,
        agent=args.agent,
        recipe=args.recipe,
        launch=args.launch,
        actors=args.actors,
        minutes=args.minutes,
        cpu_seconds=args.cpu_seconds,
        games=args.games,
        frames=args.frames,
        out=args.out,
        seed=args.seed,
        demos=args.demos,
        threads=args.threads,
        devices=args.devices,
        settings=args.settings,
    )
    if args.quiet:
        warn_unlearned(report)
    return report


def warn_unlearned(report: Mapping[str, Any]) -> None:
    """Warns if a call of ``train_task`` spent its budget without an optimizer step."""
    if report["exit_code"] == 1:
        told = f"this call learned nothing: {report['unlearned']}"
        warnings.warn(told, TengenWarning, stacklevel=3)


def _frames(text: str) -> int:
    """Parses a number with an optional suffix k, M or G, such as ``500k``."""
    match = re.fullmatch("([0-9]{1,15})([kMG]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError(
            f"{text} must be a number, such as 500k or 10M"
        )
    return int(match[1]) * {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}[match[2]]
