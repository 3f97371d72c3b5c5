"""The command line: a table of commands, each imported when it is called.

A command is a function ``(args) -> report``. It prints text for people, unless
``args.json`` is set; then the report is printed as one JSON object, the last line of
stdout. With ``--quiet`` nothing is printed on stdout but that object; errors and
warnings still go to stderr. The report's ``exit_code`` is the command's, 0 where the
report has none.

Exit codes: 0 done, 1 failed, 2 bad usage or config, 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import io
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TextIO

from tengen import __version__
from tengen.errors import (
    TengenError,
    TengenWarning,
    UsageError,
    did_you_mean,
    refusal,
)
from tengen.own_process import mark_own_process

__all__ = [
    "COMMANDS",
    "Command",
    "CommandParser",
    "command_parser",
    "find_command",
    "main",
    "parse_command",
]

_PYTHON_SHOWS = warnings.showwarning


@dataclass(frozen=True)
class Command:
    """One row of the table."""

    name: str
    """The command as it is typed, one word or two."""
    target: str
    """``module:function``; beside it ``function_arguments(parser)``, or
    ``add_arguments(parser)`` for all commands of the module, declares the arguments."""
    help: str
    """One phrase, for the list of commands."""
    talks: bool = False
    """Whether the command prints even with --quiet, because its stdout is one side of a
    conversation or says where to connect."""


COMMANDS = (
    Command("train", "tengen.recipes.run:train", "train an agent from nothing"),
    Command("play", "tengen.play.command:play", "play against a trained agent", True),
    Command(
        "serve",
        "tengen.serve.command:serve",
        "watch runs and play in a browser",
        talks=True,
    ),
    Command(
        "gtp",
        "tengen.play.gtp.command:gtp",
        "play Go with a model, for GTP controllers",
        True,
    ),
    Command(
        "gomocup",
        "tengen.play.gomocup.command:gomocup",
        "play gomoku with a model, for Gomocup managers",
        talks=True,
    ),
    Command(
        "match", "tengen.evaluation.command:match", "play a match between two players"
    ),
    Command("book", "tengen.play.book:book", "find balanced openings for games"),
    Command(
        "eval",
        "tengen.play.eval_command:evaluate",
        "measure an agent's return in its environment",
    ),
    Command(
        "status",
        "tengen.observe.status:status",
        "show a run's progress and its bottleneck",
    ),
    Command(
        "curves", "tengen.observe.curves.table:curves", "write a run's curve as CSV"
    ),
    Command("report", "tengen.report.write:report", "write a run as one HTML page"),
    Command(
        "mllog",
        "tengen.minigo.log:mllog",
        "write a benchmark run's log in MLPerf's form",
    ),
    Command(
        "scale",
        "tengen.launch.scale_command:scale",
        "change how many processes act in a run",
    ),
    Command("stop", "tengen.observe.status:stop", "ask a run to save and end"),
    Command("recipes", "tengen.recipes.command:recipes", "list what can be trained"),
    Command(
        "game new",
        "tengen.cli.starters:game_new",
        "write a starter file for a game of your own",
    ),
    Command(
        "game check",
        "tengen.games.check.command:game_check",
        "check a game of your own, or one of OpenSpiel",
    ),
    Command(
        "env new",
        "tengen.cli.starters:env_new",
        "write a starter file for an environment of your own",
    ),
    Command(
        "env check",
        "tengen.envs.check.command:env_check",
        "check an environment, your own or an installed one",
    ),
    Command(
        "players",
        "tengen.bundled.command:players",
        "list the trained players that are part of tengen",
    ),
    Command(
        "doctor",
        "tengen.cli.doctor:doctor",
        "show what tengen will use on this machine, and why",
    ),
    Command("selfplay", "tengen.roles.alone.command:selfplay", "one role: play games"),
    Command("actor", "tengen.roles.alone.command:actor", "one role: step environments"),
    Command(
        "inference",
        "tengen.roles.alone.command:inference",
        "one role: evaluate the network for actors",
    ),
    Command(
        "shuffle", "tengen.roles.alone.command:shuffle", "one role: draw batches ahead"
    ),
    Command(
        "learn",
        "tengen.roles.alone.command:learn",
        "one role: learn from experience",
    ),
    Command(
        "export", "tengen.roles.alone.command:export", "one role: export candidates"
    ),
    Command(
        "gate", "tengen.roles.alone.command:gate", "one role: accept or reject models"
    ),
    Command("store", "tengen.roles.store:store", "serve a store of experience"),
    Command(
        "store top",
        "tengen.roles.store:store_top",
        "show what a store holds and what waits for it",
    ),
    Command(
        "store replicate",
        "tengen.roles.store:store_replicate",
        "copy a store on another host to a folder here, continuously",
    ),
    Command(
        "data import-minigo",
        "tengen.minigo.import_command:import_minigo",
        "import models and examples of MLPerf's minigo",
    ),
    Command(
        "data export-onnx",
        "tengen.models.onnx_command:export_onnx",
        "export a model to ONNX for other programs",
    ),
    Command("bench", "tengen.cli.bench.command:bench", "measure the speed of one part"),
    Command(
        "completion",
        "tengen.cli.completion:completion",
        "print a script that completes commands in a shell",
        talks=True,
    ),
)


class CommandParser(argparse.ArgumentParser):
    """Raises UsageError where argparse would print its usage and exit."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Raises UsageError: argparse does not understand the arguments."""
        raise UsageError(
            f"arguments ({message}) are not understood; try {self.prog} -h"
        )

    def options(self) -> list[str]:
        """Returns every long option."""
        strings = (text for action in self._actions for text in action.option_strings)
        return [text for text in strings if text.startswith("--")]


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and returns the exit code; errors are one line on stderr."""
    _prepare_streams()
    if argv is None:
        mark_own_process()
    try:
        # If C code crashes, as an environment's may, stderr shows the Python line that
        # called it.
        with contextlib.suppress(OSError, ValueError):
            if not faulthandler.is_enabled():
                faulthandler.enable()
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = _run(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _fail("interrupted", 130)
    except BrokenPipeError:
        # The reader closed the pipe. Python would report it again when it flushes at
        # exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return TengenError.exit_code
    except Exception as error:
        refused = refusal(error)
        if refused is None:
            raise
        return _fail(str(refused), refused.exit_code)


def parse_command(argv: Sequence[str]) -> tuple[Command, argparse.Namespace]:
    """Returns the command that was typed, and its arguments; runs nothing.

    Args:
        argv: What follows ``tengen``.

    Raises:
        UsageError: The command or an argument is not known, or an argument is missing.
    """
    command = find_command(argv)
    words = list(argv[len(command.name.split()) :])
    return command, _parse(command_parser(command), words)


def command_parser(command: Command) -> CommandParser:
    """Returns the parser of a command's arguments, with the command's help.

    Imports the command's module.
    """
    module_name, _, function = command.target.partition(":")
    module = importlib.import_module(module_name)
    parser = CommandParser(prog=f"tengen {command.name}", description=command.help)
    own = f"{function}_arguments"
    add = getattr(module, own) if hasattr(module, own) else module.add_arguments
    add(parser)
    parser.add_argument(
        "--json", action="store_true", help="end with one JSON object on stdout"
    )
    parser.add_argument(
        "--quiet",
        action="store_true",
        help="print only errors, warnings and the JSON object",
    )
    return parser


def _prepare_streams() -> None:
    """Keeps the streams from failing when they are closed or hold undecodable bytes."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _run(argv: list[str]) -> int:
    if not argv or argv[0] in ("-h", "--help", "help"):
        print(_overview())
        return 0 if argv else UsageError.exit_code
    if argv[0] == "--version":
        print(f"tengen {__version__}")
        return 0
    command, args = parse_command(argv)
    module_name, function_name = command.target.split(":")
    function: Callable[[argparse.Namespace], Mapping[str, Any]]
    function = getattr(importlib.import_module(module_name), function_name)
    with _quietly(command) if args.quiet else contextlib.nullcontext():
        report = function(args)
    if args.json:
        print(json.dumps(report))
    return int(report.get("exit_code", 0))


@contextlib.contextmanager
def _quietly(command: Command) -> Iterator[None]:
    """Context in which nothing is printed, except by a command with ``talks``."""
    from tengen.observe.progress_line import silenced

    with silenced(), open(os.devnull, "w") as nowhere:
        if command.talks:
            yield
            return
        with contextlib.redirect_stdout(nowhere):
            yield


def find_command(argv: Sequence[str]) -> Command:
    """Returns the command that the words begin with.

    Args:
        argv: What follows ``tengen``.

    Raises:
        UsageError: The words begin with no command.
    """
    known = {command.name: command for command in COMMANDS}
    name = " ".join(argv[:2])
    if name not in known:
        name = argv[0] if argv else "none"
    if name not in known:
        raise UsageError(_unknown(name, argv, known))
    return known[name]


def _unknown(name: str, argv: Sequence[str], known: Mapping[str, Command]) -> str:
    if name.startswith("-"):
        return f"command ({name}) is not known; name one first, as tengen --help has it"
    rest = [full.split()[1] for full in known if full.startswith(f"{name} ")]
    if not rest:
        return f"command ({name}) is not known; {did_you_mean(name, known)}"
    if len(argv) < 2 or argv[1].startswith("-"):
        ways = " or ".join(f"tengen {name} {word}" for word in rest)
        return f"command ({name}) needs one more word; try {ways}"
    typed = f"{name} {argv[1]}"
    return f"command ({typed}) is not known; {did_you_mean(argv[1], rest)}"


def _parse(parser: CommandParser, argv: list[str]) -> argparse.Namespace:
    args, unknown = parser.parse_known_args(argv)
    if not unknown:
        return args
    # A command with subcommands sets the parser of the chosen one.
    parser = getattr(args, "parser", parser)
    name = unknown[0].partition("=")[0]
    if name.startswith("-"):
        known = parser.options()
        raise UsageError(f"option ({name}) is not known; {did_you_mean(name, known)}")
    raise UsageError(f"argument ({name}) is one too many; try {parser.prog} -h")


def _overview() -> str:
    width = max(len(command.name) for command in COMMANDS)
    rows = [f"  {row.name:<{width}}  {row.help}" for row in COMMANDS]
    return "\n".join(
        [
            "usage: tengen COMMAND ... [--json] [--quiet]",
            "",
            "Trains agents by reinforcement learning. Start with:",
            "  tengen train gomoku/9 --minutes 10",
            "",
            *rows,
            "",
            "tengen COMMAND -h shows a command's arguments.",
        ]
    )


def _fail(message: str, code: int) -> int:
    _say(message)
    return code


def _say(message: str) -> None:
    # One line, whatever the message holds, because scripts read it.
    text = f"tengen: {' '.join(message.split())}"
    # Importing the progress line is slow; a command that has not imported it draws
    # none.
    lines = sys.modules.get("tengen.observe.progress_line")
    with contextlib.nullcontext() if lines is None else lines.wiped():
        print(text, file=sys.stderr)


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    if issubclass(category, TengenWarning):
        _say(str(message))
    else:
        _PYTHON_SHOWS(message, category, filename, lineno, file, line)
