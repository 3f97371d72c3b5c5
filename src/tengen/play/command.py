"""``tengen play``: plays games against a model, in the terminal or through a pipe."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tengen import envs
from tengen.errors import UsageError
from tengen.games import Game, State, add_task_argument
from tengen.observe.progress_line import ProgressLine
from tengen.play.board import make_board_text
from tengen.play.growing import Analysis
from tengen.play.loading import load_player
from tengen.play.session.arguments import (
    add_level_argument,
    add_search_arguments,
    checked_simulations,
)

_SIMULATIONS = 200


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command-line arguments of ``tengen play`` to ``parser``."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="RUN, RUN@17, a model directory, katago:FILE or a bundled player, such as "
        "connect4 or go/9 (see tengen players)",
    )
    parser.add_argument(
        "--simulations",
        type=int,
        metavar="N",
        help=f"simulations per move ({_SIMULATIONS})",
    )
    add_level_argument(parser)
    add_search_arguments(parser)
    add_task_argument(parser)
    side = parser.add_mutually_exclusive_group()
    side.add_argument(
        "--first", action="store_true", help="you make the first move (default)"
    )
    side.add_argument(
        "--second", action="store_true", help="the agent makes the first move"
    )


def play(args: argparse.Namespace) -> dict[str, Any]:
    """Plays games until the user quits or the input ends; returns ``Session.report``.

    Raises:
        UsageError: The model cannot be used, or a number or a setting is invalid.
        RunError: The backend rejects the model.
    """
    simulations = checked_simulations(args)
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    with ProgressLine("opening the model"):
        try:
            opened = load_player(
                args.model,
                args.settings,
                args.devices,
                args.task,
                is_fresh=args.fresh,
                level=args.level,
            )
        except UsageError:
            if Path(args.model).exists() or not envs.is_known(args.model):
                raise
            raise UsageError(
                f"model ({args.model}) is an environment; to play it yourself, use "
                f"tengen demos play {args.model} --out FOLDER"
            ) from None
    with opened as player:
        if player.level is not None:
            simulations = player.level.simulations
        session = Session(
            player,
            lambda text: print(text, flush=True),
            simulations=simulations or _SIMULATIONS,
            threads=player.usual_threads(args.threads, is_repeatable=args.fresh),
            person_is_first=not args.second,
            colours=is_terminal and "NO_COLOR" not in os.environ,
        )
        if is_terminal:
            with contextlib.suppress(ImportError):
                # If available, readline adds line editing and a history to ``input``.
                import readline  # noqa: F401
        run(session, with_prompt=is_terminal)
    return session.report()


def run(session: Session, *, with_prompt: bool) -> None:
    """Runs a session with lines from stdin until the session or the input ends.

    Args:
        session: The session to run, which has not been started.
        with_prompt: Whether to show a prompt, and a newline at the end of the input.
    """
    session.start()
    while not session.is_over:
        try:
            line = input(session.prompt if with_prompt else "")
        except EOFError:
            if with_prompt:
                print()
            return
        session.feed(line)


_STONES = ("X", "O")
_NUM_SHOWN = 5
_BAR_CELLS = 20


class Opponent(Protocol):
    """Interface of a user's opponent, which ``Player`` implements."""

    @property
    def name(self) -> str:
        """The opponent's name, shown to the user."""

    @property
    def game(self) -> Game:
        """The game that the opponent plays."""

    def analyse(
        self, moves: list[int], simulations: int = 64, seed: int = 0, threads: int = 1
    ) -> Analysis:
        """Searches the position after ``moves``, and returns the analysis."""


@dataclass(frozen=True)
class _Command:
    names: tuple[str, ...]
    help: str
    run: Callable[[], None]


class Session:
    """A user's games against an opponent in the terminal.

    ``start`` and ``feed`` block until it is the user's turn or the session has ended.

    Args:
        opponent: The opponent, which chooses moves.
        show: Called to print text for the user.
        simulations: Simulations of each search, at least 1.
        threads: Threads of each search, at least 1.
        person_is_first: Whether the user moves first.
        colours: Whether to print ANSI colours.

    Attributes:
        moves: Actions of the current game.
        is_over: Whether the user has quit.
    """

    def __init__(
        self,
        opponent: Opponent,
        show: Callable[[str], None],
        *,
        simulations: int,
        threads: int = 1,
        person_is_first: bool,
        colours: bool = False,
    ) -> None:
        self.moves: list[int] = []
        self.is_over = False
        self._movers: list[int] = []  # The player of each move in ``moves``.
        self._opponent = opponent
        self._show = show
        self._simulations = simulations
        self._threads = threads
        self._person = 0 if person_is_first else 1
        self._colours = colours
        self._board = make_board_text(opponent.game)
        self._state: State = opponent.game.new_state()
        commands = (
            _Command(("hint", "h"), "suggest a move", self._hint),
            _Command(("analyse", "analyze", "a"), "show its analysis", self._analyse),
            _Command(("undo", "u"), "take your last move back", self._undo),
            _Command(("swap",), "change sides", self._swap),
            _Command(("new", "n"), "start a new game", self._new),
            _Command(("board", "b"), "show the board", self._show_board),
            _Command(("help", "?"), "show this help", self._help),
            _Command(("quit", "q", "exit"), "leave", self._quit),
        )
        self._commands = {name: row for row in commands for name in row.names}
        self._rows = commands

    @property
    def prompt(self) -> str:
        """The text of the prompt for the user's next line."""
        if self._state.is_terminal():
            return "new, undo or quit: "
        return f"{_STONES[self._person]}: "

    def start(self) -> None:
        """Shows a greeting, and plays the opponent's move if it moves first."""
        self._show(
            f"{self._opponent.game.name} against {self._opponent.name}, "
            f"{self._simulations} simulation{'s' * (self._simulations != 1)} a move; "
            f"you are {_STONES[self._person]}"
        )
        self._show(f"a move is {self._board.move_help}; help shows the commands")
        self._show_board()
        self._answer()

    def feed(self, line: str) -> None:
        """Processes a typed move or command. Blocks while the opponent searches."""
        words = line.strip().lower()
        if not words:
            return
        if words in self._commands:
            self._commands[words].run()
            return
        if self._state.is_terminal():
            self._show('the game is over; type "new", "undo" or "quit"')
            return
        action = self._board.read(words)
        if action is None:
            self._show(
                f'"{_short(line.strip())}" is neither a move nor a command; '
                f"type {self._board.move_help}, or help"
            )
        elif action not in self._state.legal_actions():
            self._show(f"{self._board.write(action)} cannot be played here; try hint")
        else:
            self._play(action)
            self._answer()

    def report(self) -> dict[str, Any]:
        """Returns the current game as JSON values.

        Keys: ``game``, ``moves``, ``person`` (the user's side, ``first`` or
        ``second``), ``finished``, and the user's ``score`` (1, 0.5 or 0; None before
        the end).
        """
        finished = self._state.is_terminal()
        score = 0.5 + 0.5 * self._state.returns()[self._person] if finished else None
        return {
            "game": self._opponent.game.name,
            "moves": list(self.moves),
            "person": ("first", "second")[self._person],
            "finished": finished,
            "score": score,
        }

    def _play(self, action: int) -> None:
        self._movers.append(self._state.to_play)
        self._state.apply(action)
        self.moves.append(action)

    def _answer(self) -> None:
        """Plays the opponent's moves until the user's turn, and shows the board."""
        if self.moves:
            self._show_board()
        while self._is_opponents_turn():
            analysis = self._think()
            action = analysis.action_to_play
            self._play(action)
            move = self._board.write(action)
            bar = value_bar(-analysis.value_to_play)
            self._show(f"{self._opponent.name} plays {move}   you {bar}")
            self._show_board()
        if self._state.is_terminal():
            self._show(self._result())

    def _think(self) -> Analysis:
        return self._opponent.analyse(
            self.moves, self._simulations, threads=self._threads
        )

    def _is_opponents_turn(self) -> bool:
        return not self._state.is_terminal() and self._state.to_play != self._person

    def _result(self) -> str:
        won = self._state.returns()[self._person]
        return "you win" if won > 0 else "you lose" if won < 0 else "a draw"

    def _show_board(self) -> None:
        last = self.moves[-1] if self.moves else None
        self._show("\n" + self._board.draw(self._state, last, self._colours) + "\n")

    def _hint(self) -> None:
        if self._has_ended():
            return
        analysis = self._think()
        move = self._board.write(analysis.best_action)
        self._show(f"try {move}   you {value_bar(analysis.value_to_play)}")

    def _analyse(self) -> None:
        if self._has_ended():
            return
        analysis = self._think()
        ending = ", certain" if analysis.is_proven else ""
        self._show(
            f"you {value_bar(analysis.value_to_play)}   "
            f"{analysis.num_simulations} simulations{ending}"
        )
        self._show("  move   visits   prior   win rate after it")
        for row in analysis.actions[:_NUM_SHOWN]:
            seen = value_bar(row.value_to_play) if row.visits else "not tried"
            move = self._board.write(row.action)
            self._show(f"  {move:<5} {row.visits:>7} {row.prior:>7.1%}   {seen}")

    def _has_ended(self) -> bool:
        if self._state.is_terminal():
            self._show("the game is over; there is nothing to search")
        return self._state.is_terminal()

    def _undo(self) -> None:
        """Takes back the user's last move and the opponent's reply to it."""
        mine = [ply for ply, who in enumerate(self._movers) if who == self._person]
        if not mine:
            self._show("you have no move to take back")
            return
        self._reset(self.moves[: mine[-1]])
        self._show_board()

    def _swap(self) -> None:
        if self._has_ended():
            return
        self._person = 1 - self._person
        self._show(f"you are {_STONES[self._person]} now")
        self._answer()

    def _new(self) -> None:
        self._reset([])
        self._show_board()
        self._answer()

    def _reset(self, moves: list[int]) -> None:
        self._state = self._opponent.game.new_state()
        self.moves, self._movers = [], []
        for action in moves:
            self._play(action)

    def _help(self) -> None:
        self._show(f"a move is {self._board.move_help}")
        for row in self._rows:
            self._show(f"  {row.names[0]:<8} {row.help}")

    def _quit(self) -> None:
        self.is_over = True


def value_bar(value: float) -> str:
    """Returns a value in [-1, 1] as a text bar and a winning chance; a draw is 50 %."""
    chance = 0.5 + 0.5 * min(max(value, -1.0), 1.0)
    full = round(chance * _BAR_CELLS)
    return f"[{'#' * full}{'-' * (_BAR_CELLS - full)}] {chance:.0%}"


def _short(text: str) -> str:
    return text if len(text) <= 20 else text[:17] + "..."
