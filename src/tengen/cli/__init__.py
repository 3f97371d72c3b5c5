"""The command line: a table of commands, whose modules are imported on demand.

A command is a function ``(args) -> report``. It prints text for people, except if
``args.json`` is set; then the last line of stdout is the report as one JSON object.
With ``--quiet``, stdout has nothing else; errors and warnings still go to stderr. The
process exits with the report's ``exit_code``, or 0.

Exit codes: 0 success, 1 failure, 2 bad usage or config, 130 interrupted.
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
from importlib.resources import files
from typing import Any, NoReturn, TextIO

from tengen import __version__
from tengen.cli.table import COMMANDS, GROUPS, Command
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
    "examples_of",
    "find_command",
    "main",
    "parse_command",
]

_PYTHON_SHOWS = warnings.showwarning


class CommandParser(argparse.ArgumentParser):
    """An ``ArgumentParser`` that raises UsageError instead of exiting."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)

    def error(self, message: str) -> NoReturn:
        """Raises UsageError with argparse's message."""
        raise UsageError(f"arguments ({message}) are invalid; see {self.prog} -h")

    def options(self) -> list[str]:
        """Returns the parser's options that begin with ``--``, such as ``--json``."""
        strings = (text for action in self._actions for text in action.option_strings)
        return [text for text in strings if text.startswith("--")]

    def hide(self, names: Sequence[str]) -> None:
        """Leaves options out of ``--help``, and adds ``--help-all``, which shows them.

        Args:
            names: The options without ``--``.
        """
        hidden = [
            action
            for action in self._actions
            if {f"--{name}" for name in names} & set(action.option_strings)
        ]
        self.add_argument(
            "--help-all",
            action=_HelpAll,
            nargs=0,
            default=argparse.SUPPRESS,
            help=f"show {len(hidden)} more options and exit",
            shown=[(action, action.help) for action in hidden],
        )
        for action in hidden:
            action.help = argparse.SUPPRESS


class _HelpAll(argparse.Action):
    """Shows the help again of options that were hidden, then prints it and exits."""

    def __init__(
        self, *args: Any, shown: list[tuple[argparse.Action, str | None]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.shown = shown

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> NoReturn:
        """Prints the help of all options, and exits."""
        for action, text in self.shown:
            action.help = text
        self.help = argparse.SUPPRESS
        parser.print_help()
        parser.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a command; returns its exit code. An error is printed as one stderr line."""
    _prepare_streams()
    if argv is None:
        mark_own_process()
    try:
        # If C code crashes, for example that of an environment, faulthandler prints the
        # Python traceback to stderr.
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
        # The reader of stdout closed the pipe. Redirect stdout, or Python would report
        # a second error when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return TengenError.exit_code
    except Exception as error:
        refused = refusal(error)
        if refused is None:
            raise
        return _fail(str(refused), refused.exit_code)


def parse_command(argv: Sequence[str]) -> tuple[Command, argparse.Namespace]:
    """Returns a command and its parsed arguments. Does not run the command.

    Args:
        argv: The words after ``tengen``.

    Raises:
        UsageError: The command or an argument is unknown, or an argument is missing.
    """
    command = find_command(argv)
    words = list(argv[len(command.name.split()) :])
    return command, _parse(command_parser(command), words)


def command_parser(command: Command) -> CommandParser:
    """Imports a command's module; returns a parser for the command's arguments."""
    module_name, _, function = command.target.partition(":")
    module = importlib.import_module(module_name)
    parser = CommandParser(
        prog=f"tengen {command.name}",
        description=command.help,
        epilog="\n".join(["examples:", *map("  {}".format, examples_of(command))]),
    )
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
    if command.rare:
        parser.hide(command.rare.split())
    return parser


def examples_of(command: Command) -> list[str]:
    """Returns the command lines that a command's help shows as examples."""
    text = (files(__package__) / "data" / "examples.txt").read_text()
    names = {row.name for row in COMMANDS}
    found = []
    for line in text.splitlines():
        _, first, *rest = line.split()
        two = " ".join([first, *rest[:1]])
        if command.name == (two if two in names else first):
            found.append(line)
    return found


def _prepare_streams() -> None:
    """Replaces closed standard streams; makes open ones escape invalid characters."""
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
    """Silences the progress line and, unless ``command.talks``, stdout."""
    from tengen.observe.progress_line import silenced

    with silenced(), open(os.devnull, "w") as nowhere:
        if command.talks:
            yield
            return
        with contextlib.redirect_stdout(nowhere):
            yield


def find_command(argv: Sequence[str]) -> Command:
    """Returns the command that the first one or two words of ``argv`` name.

    Args:
        argv: The words after ``tengen``.

    Raises:
        UsageError: The first words are not the name of a command.
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
        return f"command ({name}) is not known; put a command first, see tengen --help"
    rest = [full.split()[1] for full in known if full.startswith(f"{name} ")]
    if not rest:
        return f"command ({name}) is not known; {did_you_mean(name, known)}"
    if len(argv) < 2 or argv[1].startswith("-"):
        ways = " or ".join(f"tengen {name} {word}" for word in rest)
        return f"command ({name}) needs a subcommand; try {ways}"
    typed = f"{name} {argv[1]}"
    return f"command ({typed}) is not known; {did_you_mean(argv[1], rest)}"


def _parse(parser: CommandParser, argv: list[str]) -> argparse.Namespace:
    args, unknown = parser.parse_known_args(argv)
    if not unknown:
        return args
    # If the command has subcommands, ``args.parser`` is the chosen subcommand's parser.
    parser = getattr(args, "parser", parser)
    name = unknown[0].partition("=")[0]
    if name.startswith("-"):
        known = parser.options()
        raise UsageError(f"option ({name}) is not known; {did_you_mean(name, known)}")
    raise UsageError(f"argument ({name}) is unexpected; see {parser.prog} -h")


def _overview() -> str:
    width = max(len(command.name) for command in COMMANDS)
    lines = [
        "usage: tengen COMMAND ... [--json] [--quiet]",
        "",
        "Trains agents with reinforcement learning. Start with:",
        "  tengen train gomoku/9 --minutes 10",
    ]
    for heading, group in GROUPS.items():
        lines += ["", f"{heading}:"]
        lines += [f"  {row.name:<{width}}  {row.help}" for row in group]
    lines += ["", "tengen COMMAND -h shows a command's arguments and two examples."]
    return "\n".join(lines)


def _fail(message: str, code: int) -> int:
    _say(message)
    return code


def _say(message: str) -> None:
    # Print a single line, because scripts parse stderr.
    text = f"tengen: {' '.join(message.split())}"
    # Do not import the progress line here: the import is slow, and a command that has
    # not imported it shows no progress line to wipe.
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
