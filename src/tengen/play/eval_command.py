"""``tengen eval``: measures an agent's return, or plays models against a target."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import numpy as np

from tengen import envs
from tengen.config import check, check_range
from tengen.errors import RunError
from tengen.evaluation import (
    MAX_FILMS,
    MAX_STEPS,
    Acting,
    ActingMode,
    EpisodesReport,
    FilmFile,
    Films,
    Side,
    Tally,
    play_episodes,
)
from tengen.evaluation.match import MAX_SEED
from tengen.games import add_task_argument
from tengen.minigo.eval_command import evaluate_models, has_target
from tengen.models import resolve_model
from tengen.observe.progress_line import ProgressLine
from tengen.play.agent_player import AgentModel, open_agent

_MAX_EPISODES = 1_000_000
# Maximum number of vectorized copies; constant, because results depend on the number.
_MAX_COPIES = 16
_OF_EPISODES = (
    "episodes",
    "against",
    "seed",
    "step_timeout",
    "max_steps",
    "protocol",
    "act",
    "epsilon",
    "video",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command-line arguments of ``tengen eval`` to ``parser``."""
    parser.add_argument("model", metavar="RUN", help="RUN, RUN@17 or a model directory")
    parser.add_argument(
        "--episodes",
        type=int,
        default=100,
        metavar="N",
        help="number of episodes (100)",
    )
    parser.add_argument(
        "--against",
        metavar="RUN",
        help="a model that acts for the other teams, in an environment with several "
        "teams; the models change sides after each episode",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the environment (0)"
    )
    parser.add_argument(
        "--step-timeout",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="time limit of one step of all copies, in seconds (120)",
    )
    parser.add_argument(
        "--max-steps",
        type=int,
        default=MAX_STEPS,
        metavar="N",
        help=f"truncate episodes after this many steps ({MAX_STEPS:,})",
    )
    parser.add_argument(
        "--protocol",
        metavar="P",
        help="evaluation protocol for Atari: v5, classic or r2d2 (that of the task)",
    )
    parser.add_argument(
        "--act",
        choices=get_args(ActingMode),
        help="how actions are chosen from the network's outputs (as in the task's "
        "protocol)",
    )
    parser.add_argument(
        "--epsilon",
        type=float,
        help=f"with --act epsilon, the share of random actions ({Acting.epsilon})",
    )
    parser.add_argument(
        "--video",
        metavar="DIR",
        help=f"folder for videos of the first {MAX_FILMS} episodes",
    )
    parser.add_argument(
        "--threads",
        type=int,
        help="only for a run with a target (agent.target), which its models play in "
        "order until one passes: cores to use (all); of the other options, only "
        "--opponent and --task apply",
    )
    parser.add_argument(
        "--opponent",
        metavar="PLAYER",
        help="the run's target, required if it is a program (gtp:COMMAND): a program "
        "is started only if you name it here, not because a file names it",
    )
    add_task_argument(parser)


def evaluate(args: argparse.Namespace) -> dict[str, Any]:
    """Plays complete episodes; prints and returns their mean return and its interval.

    With ``--against``, it plays a match of two models. A run with a target is evaluated
    by ``evaluate_models`` instead.

    Returns:
        ``model`` (the model directory), ``task``, ``seed``, ``protocol``, ``acting``
        (as text), ``against`` (None without this option), and the fields of
        ``EpisodesReport.to_json``; with ``--video`` also ``films``, a list of
        ``FilmFile.to_json``. ``exit_code`` is 1 if closing the environment fails.

    Raises:
        UsageError: A model cannot be used or plays a board game, the models have
            different tasks, a number is out of range, or the environment cannot render
            frames, or has no teams for a match.
        RunError: The environment fails or hangs, a network output is not finite, or a
            video cannot be written.
    """
    if has_target(args.model):
        rule = "is for runs without a target, and this run has one; leave it out"
        _check_left_out(args, _OF_EPISODES, rule)
        return evaluate_models(args)
    rule = "is for runs with a target; leave it out"
    _check_left_out(args, ("threads", "opponent"), rule)
    check_range("episodes", args.episodes, 1, _MAX_EPISODES)
    check_range("seed", args.seed, 0, MAX_SEED)
    check_range("max-steps", args.max_steps, 1, 2**31)
    check(
        0 < args.step_timeout <= threading.TIMEOUT_MAX,
        "step_timeout",
        args.step_timeout,
        "must be above 0 and at most what a thread can wait; use 120",
    )
    with ProgressLine("opening the model"):
        model = open_agent(resolve_model(args.model), args.model, task=args.task)
    task = model.task
    if args.protocol is not None:
        task = envs.with_protocol(task, args.protocol)
    films = None
    if args.video is not None:
        num_films = min(args.episodes, MAX_FILMS)
        films = Films(Path(args.video), num_films, args.max_steps)
    try:
        return _evaluate(args, model, task, films)
    finally:
        if films is not None:
            films.close()


def _check_left_out(args: argparse.Namespace, names: Sequence[str], rule: str) -> None:
    """Raises UsageError if an option in ``names`` differs from its default value."""
    usual = argparse.ArgumentParser()
    add_arguments(usual)
    for name in names:
        value = getattr(args, name)
        shown = name.replace("_", "-")
        check(value == usual.get_default(name), f"--{shown}", value, rule)


def _evaluate(
    args: argparse.Namespace, model: AgentModel, task: str, films: Films | None
) -> dict[str, Any]:
    num_copies = min(args.episodes, _MAX_COPIES)

    def make() -> envs.Env:
        if films is None:
            return envs.make(task, num_copies, args.seed)
        num_films = films.num_films
        return films.filming(envs.make_filmed(task, num_copies, args.seed, num_films))

    env = envs.TimelyEnv(make, args.step_timeout, task)
    result: dict[str, Any] = {}
    try:
        with closing(env):
            result = _played(args, model, task, env, films)
    except RunError as error:
        if not result:
            raise
        # All episodes are complete and only closing failed, so return the result.
        print(f"tengen: {error}", file=sys.stderr)
        result["exit_code"] = RunError.exit_code
    return result


def _played(
    args: argparse.Namespace,
    model: AgentModel,
    task: str,
    env: envs.Env,
    films: Films | None,
) -> dict[str, Any]:
    against = _against(args, model, env.spec)
    with ProgressLine(f"episode 0 of {args.episodes}") as line:
        acting = _acting(args, model, env.spec)
        report = play_episodes(
            env,
            model.agent,
            model.backend,
            args.episodes,
            model=model.name,
            max_steps=args.max_steps,
            acting=acting,
            seed=args.seed,
            against=against,
            watch=lambda done: line.tell(f"episode {done} of {args.episodes}"),
        )
    path = str(model.directory.path)
    files = [] if films is None else films.publish()
    if not args.json:
        print(_text(path, args.against, env.spec, acting, report), flush=True)
        if films is not None:
            print(f"films: {films.format.why}")
        for file in files:
            print(_film_text(file, report), flush=True)
    filmed = {} if films is None else {"films": [file.to_json() for file in files]}
    return {
        "model": path,
        "against": args.against,
        "task": task,
        "seed": args.seed,
        "protocol": env.spec.protocol,
        "acting": str(acting),
        **report.to_json(),
        **filmed,
    }


def _against(
    args: argparse.Namespace, model: AgentModel, spec: envs.EnvSpec
) -> Side | None:
    """Opens the model of ``--against``; returns None without this option."""
    word = args.against
    if word is None:
        return None
    other = open_agent(resolve_model(word), word, task=args.task)
    rule = f"must be a model of {model.task}; choose another one"
    check(other.task == model.task, "against", word, rule)
    rule = f"needs several teams, and {model.task} has one; leave it out"
    check(len(spec.team_members) > 1, "against", word, rule)
    return Side(other.agent, other.backend, word, _acting(args, other, spec))


def _acting(args: argparse.Namespace, model: AgentModel, spec: envs.EnvSpec) -> Acting:
    """Returns how to choose actions: from the options, or else the task's protocol.

    Raises:
        UsageError: An option is invalid, or would have no effect.
    """
    usual = model.agent.acting_to_score(spec)
    mode = args.act or usual.mode
    check(
        mode != "sampled" or model.agent.draws_actions,
        "--act",
        mode,
        f"needs a policy, and agent {model.agent.kind} has only action values; use "
        "--act epsilon --epsilon E to act as in training",
    )
    check(
        mode != "epsilon" or spec.actions.is_discrete,
        "--act",
        mode,
        f"needs discrete actions, and those of {spec.name} are continuous; use greedy "
        "or sampled",
    )
    if args.epsilon is None:
        return Acting(mode=mode, epsilon=usual.epsilon)
    check(
        mode == "epsilon",
        "--epsilon",
        args.epsilon,
        f"has no effect with --act {mode}; add --act epsilon, or leave it out",
    )
    return Acting(mode=mode, epsilon=args.epsilon)


def _text(
    path: str,
    against: str | None,
    spec: envs.EnvSpec,
    acting: Acting,
    report: EpisodesReport,
) -> str:
    num_episodes, num_frames = len(report.returns), report.num_frames
    mean = f"mean return {report.mean_return:.2f}"
    if report.interval is not None:
        low, high = report.interval
        mean += f", 95 % interval {low:.2f} to {high:.2f} (Student's t)"
    teams = [
        f"team {team}: mean return {np.mean(report.team_returns[team]):.2f}; "
        f"{'' if against is None else path + ': '}{_tally_text(tally)}"
        for team, tally in report.tallies.items()
    ]
    if teams:
        mean += f" of team {spec.teams[0]}"
    if report.tally is not None:
        teams.append(f"{path} against {against}: {_tally_text(report.tally)}")
        teams.append(f"Elo of {path} minus {against} {report.tally.elo_text}")
    if report.win_rate is not None:
        mean += f"; won {report.win_rate:.1%} of the episodes"
    protocol = f"protocol {spec.protocol}" if spec.protocol else ""
    cut = f", {report.num_cut} of them truncated" if report.num_cut else ""
    return "\n".join(
        [
            f"{path} in {spec.name}" + (f", {protocol}" if protocol else ""),
            f"actions: {acting}",
            mean,
            f"{num_episodes} episodes, returns {min(report.returns):.2f} to "
            f"{max(report.returns):.2f}, {num_frames / num_episodes:.1f} steps each"
            f"{cut}",
            *teams,
        ]
    )


def _tally_text(tally: Tally) -> str:
    """Returns results and their mean as text."""
    low, high = tally.score_interval
    return (
        f"{tally.wins} wins, {tally.draws} draws, {tally.losses} losses, score "
        f"{tally.score:.3f}, 95 % interval {low:.3f} to {high:.3f}"
    )


def _film_text(file: FilmFile, report: EpisodesReport) -> str:
    episode, num_steps = file.episode, report.lengths[file.episode]
    shown = f"{num_steps:,} steps"
    if file.num_steps < num_steps:
        shown = f"the first {file.num_steps:,} of {shown}"
    return (
        f"{file.path}: episode {episode}, return {report.returns[episode]:.2f}, {shown}"
    )
