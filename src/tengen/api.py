"""``tengen.train`` and ``tengen.Run``, for use from Python and notebooks."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tengen.bundled import BUNDLED, bundled_names
from tengen.errors import UsageError
from tengen.evaluation import command as match_command
from tengen.games import check_typed, is_game, is_program
from tengen.games.program import load_program
from tengen.observe import Progress
from tengen.observe.status import read_status
from tengen.play import AgentPlayer, Player, eval_command, load
from tengen.recipes import train_task, warn_unlearned
from tengen.report import Curves, curves
from tengen.run import RunDirectory

_PATH = "PYTHONPATH"
_importing: list[str] = []


class Run:
    """A run directory: its models, its progress and its measurements.

    ``tengen.train`` returns one; ``Run("runs/gomoku/9")`` opens an existing run, also
    while it trains.

    Args:
        path: The run directory.
        task: The run's task. Required for a game or an environment in Python, as in
            ``tengen.load``.

    Attributes:
        path: The run directory.
        task: The run's task.
        result: How the call of ``train`` ended: ``reason`` (``budget``, ``stopped`` or
            ``interrupted``), ``exit_code`` (0, or 1 if the budget ended before the
            first learner step), the latest progress and, for a game, the closing
            ``match``; empty if the run was opened.

    Raises:
        UsageError: The directory is not a run, or its task is another one.
    """

    def __init__(self, path: Path | str, task: object = None) -> None:
        self._run = RunDirectory.open(Path(path))
        self.path = self._run.path
        self.task = str(self._run.read_run()["config"]["task"])
        self.result: Mapping[str, Any] = {}
        self._typed = None if task is None else task_name(task)
        if self._typed is not None:
            check_typed(self.task, self._typed, self.path)

    def __repr__(self) -> str:
        """Returns the call that opens the run."""
        typed = "" if self._typed is None else f", {self._typed!r}"
        return f"tengen.Run({str(self.path)!r}{typed})"

    def player(self, model: int | None = None, **settings: Any) -> Player:
        """Returns a player of the run's game. Blocks while the model is compiled.

        Args:
            model: The model's number; None for the newest model.
            **settings: Further arguments of ``tengen.load``.

        Raises:
            UsageError: The task is an environment, the run has no such model, or a
                setting is invalid.
        """
        found = self._load(model, settings)
        if isinstance(found, Player):
            return found
        raise UsageError(f"task ({self.task}) is an environment; use Run.agent")

    def agent(self, model: int | None = None, **settings: Any) -> AgentPlayer:
        """Returns an agent that acts in the run's environment; see ``player``.

        Raises:
            UsageError: The task is a game, the run has no such model, or a setting is
                invalid.
        """
        found = self._load(model, settings)
        if isinstance(found, AgentPlayer):
            return found
        raise UsageError(f"task ({self.task}) is a game; use Run.player")

    def _load(self, model: int | None, settings: dict[str, Any]) -> Any:
        word = str(self.path) if model is None else f"{self.path}@{model}"
        return load(word, task=self._typed, **settings)

    def evaluate(
        self, episodes: int = 100, *, against: str | None = None, seed: int = 0
    ) -> dict[str, Any]:
        """Measures the newest model. Blocks until all episodes have ended.

        Args:
            episodes: Number of episodes, or of games with alternating colours.
            against: The opponent, as for ``tengen match``. None: in a game the bundled
                player, or ``mcts:1000`` if there is none; in an environment no model
                for the other teams.
            seed: Seed of the openings or of the environment.

        Returns:
            The object that ``tengen match --json`` or ``tengen eval --json`` prints.

        Raises:
            UsageError: The run has no model yet, or an argument is invalid.
        """
        words = ["--seed", str(seed)]
        if self._typed is not None:
            words += ["--task", self._typed]
        if is_game(self.task):
            if against is None:
                has_bundled = self.task in bundled_names()
                against = f"{BUNDLED}{self.task}" if has_bundled else "mcts:1000"
            words += [str(self.path), against, "--games", str(episodes)]
            return dict(match_command.match(_parsed(match_command, words)))
        words += [str(self.path), "--episodes", str(episodes)]
        words += [] if against is None else ["--against", against]
        return dict(eval_command.evaluate(_parsed(eval_command, words)))

    def status(self) -> dict[str, Any]:
        """Returns the run's state, as ``tengen status --json`` prints it."""
        return read_status(self._run)

    def curves(self) -> Curves:
        """Returns the run's learning curves, which notebooks render as drawings."""
        return curves(self.path)


def train(
    task: object,
    *,
    agent: str | None = None,
    settings: Mapping[str, Any] | Sequence[str] = (),
    on_progress: Callable[[Progress], bool | None] | None = None,
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
) -> Run:
    """Trains an agent on a task, and returns the run; resumes an existing run.

    Blocks until the budget is spent. Ctrl-C, SIGTERM and ``tengen stop`` end the call
    early with everything saved. A second Ctrl-C kills the roles without saving, and
    raises KeyboardInterrupt.

    Args:
        task: A name such as ``gomoku/9``, ``CartPole-v1`` or ``module:Class``; a class
            of a game or an environment; a function without arguments that makes one; a
            game of ``tengen.games.make``, or an environment of ``gymnasium.make``.
            Other processes import the class or function by name, so it must be at the
            top level of a file. In the script itself, call ``train`` below
            ``if __name__ == "__main__":``.
        agent: The algorithm; None for the task's default.
        settings: Changes to the config: ``{"learner.batch_size": 512}``.
        on_progress: Called in this thread with the run's ``Progress``, several times a
            second. If it returns False, the call ends early with everything saved. If
            it raises an exception, the call ends and raises it.
        recipe: The recipe; None for the task's default.
        launch: ``inline``, ``local``, ``ray`` or ``mpi``; with ``mpi`` only the first
            rank of ``mpirun`` returns. None for ``local`` on a GPU, with ``actors``,
            several actors in the run, or ``launch.listen``; otherwise ``inline``.
        actors: Number of processes that step environments; None for the run's number,
            which is 1 in a new run.
        minutes: Wall time of this call, without start-up; the recipe's if no budget is
            given. The CPU time of all calls decides when the network grows. A new run's
            config depends on this machine's cores; if roles take turns, generations get
            smaller if only few would fit the budget.
        cpu_seconds: CPU time of all processes of this call, without start-up. Like
            ``minutes``, but equal on a busy machine.
        games: Games of this call, in complete generations. A new run's config is then
            the same on any machine. 0 only writes the config, for roles that are
            started individually.
        frames: Environment steps of this call, in complete turns of the actors. 0 only
            writes the config, as with ``games``.
        out: The run directory, ``runs/TASK`` by default.
        seed: Seed of a new run.
        demos: Folder of demonstrations for agents that learn from them.
        threads: Number of cores to use, at most and by default all of the machine.
        devices: ``cpu`` or GPUs such as ``cuda:0,cuda:1``. Self-play uses all GPUs, and
            the learner the first GPU. By default the run's devices, or a GPU if there
            is one.

    Raises:
        UsageError: An argument, the config or the directory is not valid.
        RunError: A role failed permanently, or a file operation fails.
        KeyboardInterrupt: The user pressed Ctrl-C twice.
    """
    name = task_name(task)
    if isinstance(settings, Mapping):
        settings = [f"{key}={json.dumps(value)}" for key, value in settings.items()]
    with importable(name):
        result = train_task(
            name,
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
            on_progress=on_progress,
        )
    run = Run(result["out"], name if is_program(name) else None)
    run.result = result
    warn_unlearned(result)
    return run


def _parsed(command: Any, words: Sequence[str]) -> argparse.Namespace:
    """Returns a command's arguments, which make it return its report and print none."""
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    args = parser.parse_args(list(words))
    args.json = True
    return args


def task_name(task: Any) -> str:
    """Returns a task's name; a class or function is named ``module:Name``.

    Args:
        task: A name, a class or function at the top level of a module, a game, or an
            environment that Gymnasium made by its id without other arguments.

    Raises:
        UsageError: Another process could not make the same game or environment.
    """
    if isinstance(task, str):
        return task
    if inspect.isclass(task) or inspect.isfunction(task):
        return _name_of_code(task)
    if hasattr(task, "new_state") and isinstance(getattr(task, "name", None), str):
        return str(task.name)
    spec = getattr(task, "spec", None)
    if isinstance(getattr(spec, "id", None), str):
        return _name_of_environment(spec)
    kind = type(task)
    if kind.__module__ != "builtins" and _takes_nothing(kind):
        return _name_of_code(kind)
    raise UsageError(
        f"task (a {kind.__name__}) cannot be made again by other processes; pass a "
        "class or a function that makes it without arguments"
    )


def _takes_nothing(kind: type) -> bool:
    try:
        return not inspect.signature(kind).parameters
    except ValueError:  # a class in C
        return False


def _name_of_code(code: Any) -> str:
    name, module = code.__qualname__, code.__module__
    if module == "__main__":
        module = _name_of_script(name)
    if not name.isidentifier():
        raise UsageError(
            f"task ({name}) must be at the top level of a file, where other processes "
            "can import it; move it there"
        )
    return f"{module}:{name}"


def _name_of_script(name: str) -> str:
    main = sys.modules["__main__"]
    spec, file = getattr(main, "__spec__", None), getattr(main, "__file__", None)
    if spec is not None:
        return str(spec.name)
    if file is None:
        raise UsageError(
            f"task ({name}) is defined in a notebook or a console, where other "
            "processes cannot import it; write it to a file and import that, in a "
            "notebook with %%writefile my_task.py"
        )
    return Path(file).stem


def _name_of_environment(spec: Any) -> str:
    import gymnasium

    registered = gymnasium.registry.get(spec.id)
    given = {key: value for key, value in spec.kwargs.items() if key != "render_mode"}
    usual = {} if registered is None else dict(registered.kwargs)
    usual.pop("render_mode", None)
    if registered is None or given != usual or spec.additional_wrappers:
        raise UsageError(
            f"task ({spec.id} with arguments or wrappers) cannot be made by its id; "
            "pass a function that makes it without arguments"
        )
    return str(spec.id)


@contextmanager
def importable(task: str) -> Iterator[None]:
    """Lets processes that are started inside import ``task``, if this process can.

    They do not share this process's ``sys.path``, which contains the folder of the
    script. So ``PYTHONPATH`` begins with the folder of the task's module.

    Raises:
        UsageError: The module cannot be imported, or trains when it is imported.
    """
    if _importing:
        raise UsageError(
            f"task ({_importing[-1]}) is in a script that trains when it is imported; "
            "move the call of train into a block if __name__ == '__main__'"
        )
    if not is_program(task):
        yield
        return
    _importing.append(task)
    try:
        load_program(task)
    finally:
        _importing.pop()
    before = os.environ.get(_PATH)
    folder = _import_folder(task.partition(":")[0])
    if folder is not None:
        paths = [folder, *([] if before is None else [before])]
        os.environ[_PATH] = os.pathsep.join(paths)
    try:
        yield
    finally:
        if before is not None:
            os.environ[_PATH] = before
        elif folder is not None:
            del os.environ[_PATH]


def _import_folder(name: str) -> str | None:
    """Returns the folder of a module; None if every process finds the module."""
    file = getattr(sys.modules[name], "__file__", None)
    if file is None:
        return None
    path = Path(file).resolve()
    is_package = path.stem == "__init__"
    folder = path.parents[name.count(".") + is_package]
    installed = {Path(found).resolve() for found in sysconfig.get_paths().values()}
    return None if folder in installed else str(folder)
