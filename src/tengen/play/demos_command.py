"""``tengen demos``: records, imports and shows demonstrations in an environment."""

from __future__ import annotations

import argparse
import contextlib
import math
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from tengen import envs
from tengen.config import check, check_range
from tengen.distribution import pip_install_extra
from tengen.envs.copies import MAX_SEED, one_line
from tengen.envs.spaces import Actions, Observations
from tengen.errors import RunError, UsageError
from tengen.evaluation import Recorder, play_episodes
from tengen.experience.demonstrations import (
    Demonstrations,
    Episode,
    check_new_folder,
    write_demonstrations,
)
from tengen.games import allow, is_game
from tengen.models import resolve_model
from tengen.observe.progress_line import ProgressLine
from tengen.play.agent_player import open_agent
from tengen.tensors import ACTION_MASK

_MAX_COPIES = 16
_MAX_EPISODES = 1_000_000
_STEP_TIMEOUT_S = 120.0
_KEYS = "0123456789abcdefghijklmnopqrstuvwxyz"
_END_OF_INPUT = ("", "\x04")

Add = Callable[[Episode], None]


def demos_record_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen demos record``."""
    parser.add_argument("task", help="the environment, such as CartPole-v1")
    who = parser.add_mutually_exclusive_group(required=True)
    who.add_argument(
        "--from",
        dest="source",
        metavar="RUN",
        help="the agent that acts: RUN, RUN@17 or a model directory",
    )
    who.add_argument(
        "--keys",
        nargs="?",
        const=_KEYS,
        help="you act, with one key for each action, in order: --keys wasd "
        "(0 to 9, then a to z); Ctrl-D ends the recording",
    )
    parser.add_argument(
        "--episodes", type=int, default=20, metavar="N", help="how many (20)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the environment (0)"
    )
    _add_out(parser)


def demos_record(args: argparse.Namespace) -> dict[str, Any]:
    """Records complete episodes of an agent or of the user; see ``demos_show``.

    Raises:
        UsageError: An argument is invalid, the model does not fit the task, or the user
            completed no episode.
        RunError: The environment fails, or writing failed.
    """
    check_range("episodes", args.episodes, 1, _MAX_EPISODES)
    check_range("seed", args.seed, 0, MAX_SEED)
    check_new_folder(args.out)
    allow(args.task)
    check(not is_game(args.task), "task", args.task, "must be an environment")
    is_single = not envs.env_spec(args.task).agents
    check(is_single, "task", args.task, "must have a single agent")
    if args.source is None:
        return _record_keys(args)
    with ProgressLine("opening the model"):
        model = open_agent(resolve_model(args.source), args.source, task=args.task)

    def make() -> envs.Env:
        return envs.make(args.task, min(args.episodes, _MAX_COPIES), args.seed)

    env = envs.TimelyEnv(make, _STEP_TIMEOUT_S, args.task)
    with closing(env), ProgressLine("recording") as line:

        def record(add: Add) -> None:
            report = play_episodes(
                Recorder(env, args.episodes, add),
                model.agent,
                model.backend,
                args.episodes,
                model=model.name,
                acting=model.agent.acting_to_score(env.spec),
                seed=args.seed,
                watch=lambda done: line.tell(f"episode {done} of {args.episodes}"),
            )
            if report.num_cut:
                raise RunError(
                    f"episode ({max(report.lengths)} steps) of {args.task} must end; "
                    "limit its length, or choose another model"
                )

        path = str(model.directory.path)
        demos = write_demonstrations(args.out, env.spec, record, source=path)
    return _told(demos, args)


def _record_keys(args: argparse.Namespace) -> dict[str, Any]:
    spec = envs.env_spec(args.task)
    actions, keys = spec.actions, args.keys
    is_single = actions.is_discrete and actions.shape == ()
    check(is_single, "--keys", args.task, "needs a single discrete action; use --from")
    count = actions.num_choices[0]
    if keys == _KEYS:
        keys = keys[:count]
    check(
        len(keys) == len(set(keys)) == count,
        "--keys",
        keys,
        f"must be {count} different characters, one for each action of {args.task}",
    )
    shown = sys.stderr if args.json else sys.stdout
    try:
        env: envs.Env = envs.make_filmed(args.task, 1, args.seed, 1)
    except UsageError:
        env = envs.make(args.task, 1, args.seed)  # shown as numbers
    with closing(env):
        demos = write_demonstrations(
            args.out,
            env.spec,
            lambda add: _play(env, keys, args.episodes, add, shown),
            source="keys",
        )
    return _told(demos, args)


def _play(env: envs.Env, keys: str, num_episodes: int, add: Add, shown: TextIO) -> None:
    """Lets the user play episodes; returns early if the input ends or with Ctrl-C.

    Args:
        env: The environment, of one copy.
        keys: The key of each action.
        num_episodes: Number of episodes.
        add: Called with each episode.
        shown: Where prompts and pictures are printed.
    """
    recorder = Recorder(env, num_episodes, add)
    num_over, total = 0, 0.0
    with contextlib.suppress(KeyboardInterrupt), _keyboard() as read:
        seen = recorder.reset()
        while num_over < num_episodes:
            _show(env, seen, shown)
            prompt = f"episode {num_over + 1}, return {total:g}; keys {keys}"
            print(prompt, file=shown, flush=True)
            key = read()
            if key in _END_OF_INPUT:
                return
            mask = seen.get(ACTION_MASK)
            if key not in keys or not (mask is None or mask[0, keys.index(key)]):
                continue
            action = np.array([keys.index(key)], np.int64)
            step = recorder.step(action)
            total += float(step.reward[0])
            if step.terminated[0] or step.truncated[0]:
                num_over += 1
                ended = f"episode {num_over} has ended with return {total:g}"
                print(ended, file=shown)
                step, total = recorder.step(action), 0.0
            seen = step.observation


@contextlib.contextmanager
def _keyboard() -> Iterator[Callable[[], str]]:
    """Yields a function that waits for a key; "" at the end of the input."""
    if not sys.stdin.isatty():
        yield lambda: sys.stdin.read(1)
        return
    import termios
    import tty

    kept = termios.tcgetattr(sys.stdin)
    try:
        tty.setcbreak(sys.stdin)
        yield lambda: sys.stdin.read(1)
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, kept)


def _show(env: envs.Env, seen: envs.Arrays, shown: TextIO) -> None:
    """Draws a frame on a terminal; prints the observation if there are no frames."""
    if not isinstance(env, envs.FilmedEnv):
        numbers = "\n".join(f"{name} {array[0]}" for name, array in seen.items())
        print(numbers, file=shown)
        return
    if not shown.isatty():
        return
    picture = env.picture(0)
    size = shutil.get_terminal_size()
    height, width = picture.shape[:2]
    # A character shows two pixels, one above the other: its own colour, and the
    # background's.
    stride = max(1, math.ceil(width / size.columns), math.ceil(height / size.lines / 2))
    small = picture[::stride, ::stride]
    lines = [
        "".join(
            f"\033[38;2;{a[0]};{a[1]};{a[2]};48;2;{b[0]};{b[1]};{b[2]}m\u2580"
            for a, b in zip(upper, lower, strict=True)
        )
        for upper, lower in zip(small[::2], small[1::2], strict=False)
    ]
    print("\033[H\033[J" + "\n".join(f"{line}\033[0m" for line in lines), file=shown)


def demos_import_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen demos import``."""
    parser.add_argument(
        "dataset",
        help="a Minari dataset on this machine: its name or its folder; no agent "
        "learns from continuous actions yet",
    )
    parser.add_argument("--task", help="the environment (that of the dataset)")
    _add_out(parser)


def demos_import(args: argparse.Namespace) -> dict[str, Any]:
    """Imports all episodes of a Minari dataset; see ``demos_show``.

    Raises:
        UsageError: Minari is missing, the dataset cannot be read, its spaces are not
            supported, or an episode does not fit them.
        RunError: Writing failed.
    """
    check_new_folder(args.out)
    name = args.dataset
    try:
        import minari
    except ImportError as error:
        raise UsageError(
            f"minari (missing) cannot be imported: {error}; "
            f"{pip_install_extra('minari')}"
        ) from None
    with _reading(name):
        folder = Path(name)
        if folder.is_dir():
            data = folder / "data"
            dataset = minari.MinariDataset(data if data.is_dir() else folder)
        else:
            dataset = minari.load_dataset(name)
        task = args.task or getattr(dataset.env_spec, "id", "")
        check(bool(task), "--task", '""', f"must be given, as {name} names none")
        actions = Actions(dataset.action_space, name)
        observations = Observations(dataset.observation_space, name, actions.spec)
        given = dataset.iterate_episodes()
    spec = envs.EnvSpec(
        name=task,
        observations=observations.specs,
        actions=actions.spec,
        max_episode_steps=None,
        reward_threshold=None,
        has_action_mask=observations.has_mask,
    )

    def record(add: Add) -> None:
        with ProgressLine("importing") as line:
            for index in range(dataset.total_episodes):
                line.tell(f"episode {index + 1} of {dataset.total_episodes}")
                with _reading(name):
                    episode = _imported(next(given), observations, actions)
                add(episode)

    return _told(write_demonstrations(args.out, spec, record, source=name), args)


@contextlib.contextmanager
def _reading(name: str) -> Iterator[None]:
    """Converts the errors of a dataset; Minari and HDF5 raise many kinds of them."""
    try:
        yield
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(
            f"dataset ({name}) cannot be read, {type(error).__name__}: "
            f"{one_line(error, 200)}; see minari list local, and minari download"
        ) from error


def _imported(given: Any, observations: Observations, actions: Actions) -> Episode:
    num_steps = len(given.rewards)
    arrays = observations.zeros(num_steps + 1)
    observations.write(given.observations, arrays)
    if observations.has_mask:
        arrays[ACTION_MASK] = np.asarray(given.observations[ACTION_MASK]) != 0
    terminated, truncated = (
        np.asarray(flags, np.bool_) for flags in (given.terminations, given.truncations)
    )
    # Some datasets do not mark the end of an episode that was cut short.
    if num_steps and not (terminated | truncated).any():
        truncated = np.arange(num_steps) == num_steps - 1
    return {
        **arrays,
        "action": actions.from_gymnasium(np.asarray(given.actions)),
        "reward": np.asarray(given.rewards, np.float32),
        "terminated": terminated,
        "truncated": truncated,
    }


def demos_show_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen demos show``."""
    parser.add_argument("folder", type=Path, help="a folder of demonstrations")


def demos_show(args: argparse.Namespace) -> dict[str, Any]:
    """Checks a folder of demonstrations; prints and returns what it contains.

    Returns:
        ``folder``, ``task``, ``source``, ``episodes``, ``frames``, ``mean_return``,
        ``returns`` and ``lengths``.

    Raises:
        UsageError: The folder is missing or damaged.
    """
    demos = Demonstrations(args.folder)
    with ProgressLine(f"reading {args.folder}"):
        for _ in demos:
            pass
    return _told(demos, args)


def _add_out(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="the folder to create",
    )


def _told(demos: Demonstrations, args: argparse.Namespace) -> dict[str, Any]:
    contents = demos.contents
    returns, lengths = contents.returns, contents.lengths
    mean = float(np.mean(returns))
    if not args.json:
        print(
            f"{demos.folder}: episodes of {one_line(contents.task)}: {len(returns)}, "
            f"by {one_line(contents.source)}; returns {min(returns):g} to "
            f"{max(returns):g}, mean {mean:g}; {demos.num_steps:,} steps"
        )
    return {
        "folder": str(demos.folder),
        "task": contents.task,
        "source": contents.source,
        "episodes": len(returns),
        "frames": demos.num_steps,
        "mean_return": mean,
        "returns": list(returns),
        "lengths": list(lengths),
    }
