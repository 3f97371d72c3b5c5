"""The parser of a command's arguments."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from tengen.errors import UsageError


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
        parser.print_help()
        parser.exit()
