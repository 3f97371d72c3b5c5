"""A GTP 2 session: a model at a board, and a controller that says what to do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from tengen import __version__, _core
from tengen.errors import TengenError, UsageError
from tengen.games.vertices import write_vertex
from tengen.play.forecast import Forecast
from tengen.play.growing import Analysis
from tengen.play.gtp.analysis import AnalysisRequest, info_line, parse_analysis
from tengen.play.gtp.position import MAX_PLIES, Position, Start
from tengen.play.gtp.protocol import (
    INTERRUPT,
    Command,
    GtpError,
    answer_text,
    first_line,
    parse_line,
)
from tengen.play.gtp.resigning import Resigning
from tengen.play.player import Player
from tengen.play.session.clock import Clock
from tengen.play.session.lines import LineReader
from tengen.play.session.searches import (
    USUAL_SIMULATIONS,
    Limits,
    Searches,
    most_simulations,
)

__all__ = ["Engine", "Handler"]


class Engine:
    """One session. Used by one thread.

    Args:
        player: Who plays; its game is Go.
        handlers: Answer commands, by name.
        simulations: A move; None for 400 without a clock, and for the clock alone with
            one.
        threads: That search one tree.
        name: What the program is called.
        resigning: When it gives a game up.
        ponders: Whether it searches on in the other side's time, from its move until
            the next line; the player then keeps its tree.
        write: Takes text to send, and sends it at once.
        lines: What the controller sends, not started yet.

    Attributes:
        name: What the program is called.
        position: What stands on the board.
        clock: The time of both sides.
        is_over: Whether the controller has left.
    """

    def __init__(
        self,
        player: Player,
        handlers: Mapping[str, Handler],
        *,
        simulations: int | None,
        threads: int,
        write: Callable[[str], None],
        lines: LineReader,
        name: str = "tengen",
        resigning: Resigning | None = None,
        ponders: bool = False,
    ) -> None:
        """Searches once, so that the first move knows how fast searches are.

        Weights for forecasts are read too: no clock is running yet.

        Raises:
            UsageError: The game is not Go, or the search cannot grow.
        """
        try:
            rules = _core.parse_go_name(player.game.name)
        except _core.CoreError as error:
            raise UsageError(
                f"model ({player.name}) plays {player.game.name}, which GTP does not; "
                f"name a model of Go, or use tengen play"
            ) from error
        self.name = name
        self._trained = self._player = player
        self._simulations = simulations
        self._searches = Searches(threads, simulations or USUAL_SIMULATIONS)
        self._write = write
        self._lines = lines
        self._resigning = resigning or Resigning(None)
        self._ponders = ponders
        self._moved_to: Position | None = None
        self._handlers = handlers
        self.is_over = False
        self.clock = Clock()
        rules.max_plies = MAX_PLIES
        self.position = self.placed(Start(rules.name, rules.komi))
        self.search(self.position, Limits(2 * threads), time.monotonic())
        self.forecast(self.position)

    @property
    def rules(self) -> _core.GoRules:
        """Those that are played, but for komi and handicap."""
        return _core.parse_go_name(self.position.start.game)

    @property
    def board(self) -> tuple[int, int]:
        """Height and width."""
        rules = self.rules
        return rules.height, rules.width

    def rules_on(self, height: int, width: int) -> _core.GoRules | None:
        """Returns the same rules on another board; None where the network has no such.

        One that was trained for several boards has those that fit the largest.
        """
        frame, rules = self._trained.game, self.rules
        is_smaller = 2 <= height <= frame.height and 2 <= width <= frame.width
        is_known = is_smaller and self._trained.mixed_sizes
        if (height, width) != (frame.height, frame.width) and not is_known:
            return None
        rules.height, rules.width = height, width
        return rules

    def knows(self, ko: str, may_suicide: bool) -> bool:
        """Returns whether the network was trained for such rules, or for several."""
        rules = _core.parse_go_name(self._trained.game.name)
        is_trained = (ko, may_suicide) == (rules.ko, rules.may_suicide)
        return is_trained or self._trained.mixed_sizes

    @property
    def version(self) -> str:
        """The program's version and its model."""
        return f"{__version__} {self._trained.name}"

    def run(self) -> None:
        """Answers until the controller leaves or its input ends; once. Blocks."""
        self._lines.start()
        while not self.is_over:
            if self._ponders and self.position is self._moved_to:
                self._ponder()
            line = self._lines.next()
            if line is None:
                return
            command = parse_line(line)
            if command is not None:
                self._answer(command)

    def placed(self, start: Start, moves: Iterable[tuple[int, int]] = ()) -> Position:
        """Returns a start and moves as a position, the player ready for its game.

        Raises:
            UsageError: The stones or the komi cannot be so.
            CoreError: A move is not legal.
        """
        name = start.record().game
        player = self._player
        if name != player.game.name:
            player = self._trained.playing(name)
        position = Position(start, player.game, moves)
        self._player = player
        return position

    def clear_cache(self) -> None:
        """Forgets what searches have seen."""
        self._player = self._trained.playing(self._player.game.name)

    def forecast(self, position: Position) -> Forecast | None:
        """Returns how the network expects a game to end; None where it cannot say."""
        return self._player.forecast(position.actions)

    def search(
        self,
        position: Position,
        limits: Limits,
        begun_s: float,
        between: Callable[[Callable[[], Analysis]], bool] | None = None,
        left_out: Sequence[tuple[int, int, int]] = (),
    ) -> Analysis:
        """Returns what a search within limits finds. Blocks.

        Args:
            position: Not over.
            limits: When it ends.
            begun_s: When the move was asked for, by ``time.monotonic``.
            between: Called between slices with what tells of the search so far; True
                ends it. None: ``stop`` ends it.
            left_out: As in ``AnalysisRequest``.
        """
        return self._searches.run(
            self._player,
            position.actions,
            limits,
            begun_s,
            between or (lambda analysis: self._is_stopped()),
            left_out,
        )

    def choose(
        self,
        player: int,
        report: tuple[AnalysisRequest, bool] | None = None,
    ) -> tuple[int, float]:
        """Searches for a side within its limits, and runs its clock. Blocks.

        Args:
            player: Who is to move.
            report: What to write of the search meanwhile, and whether as KataGo does.

        Returns:
            The move, and what the side to move expects of the game, in [-1, 1].
        """
        begun_s = time.monotonic()
        position = self.position.turn_of(player)
        if position.state.is_terminal():
            return position.game.num_actions - 1, 0.0
        height, width = self.board
        where = player, len(position.actions), height * width
        budget_s = self.clock.budget_s(*where)
        simulations = self._simulations
        if simulations is None and budget_s is None:
            simulations = USUAL_SIMULATIONS
        limits = Limits(
            min(simulations or self._most, self._most),
            budget_s,
            self.clock.most_s(*where),
            may_end_early=True,
        )
        if report is None:
            left_out = position.closing_pass
            found = self.search(position, limits, begun_s, left_out=left_out)
        else:
            found = self._search_aloud(
                position, limits, begun_s, *report, stops=self._is_stopped
            )
        self.clock.spend(player, time.monotonic() - begun_s)
        return found.action_to_play, found.value_to_play

    def move(
        self,
        player: int,
        report: tuple[AnalysisRequest, bool] | None = None,
    ) -> str:
        """Plays what ``choose`` returns; returns it as GTP writes it, or ``resign``."""
        action, value_to_play = self.choose(player, report)
        actions = self.position.turn_of(player).actions
        if self._resigning.resigns(player, actions, value_to_play):
            return "resign"
        self.position = self.position.after(player, action)
        self._moved_to = self.position
        return self.vertex(action)

    def analyse(self, command: Command, *, kata: bool) -> None:
        """Writes analyses of the position until the next line comes. Blocks."""
        request = parse_analysis(command.words, self.board)
        player = request.player
        position = self.position.going_on()
        if player is not None:
            position = position.turn_of(player)
        _check_left(position, request)
        self._write(first_line(command, ok=True) + "\n")
        if not position.state.is_terminal():
            limits, begun_s = Limits(self._most), time.monotonic()
            self._search_aloud(
                position, limits, begun_s, request, kata, stops=self._is_asked
            )
        self._lines.peek(wait=True)
        self._write("\n")

    def choose_aloud(self, command: Command, player: int, *, kata: bool) -> None:
        """Plays a side's move and writes analyses meanwhile. Blocks."""
        request = parse_analysis(command.words, self.board)
        _check_left(self.position.turn_of(player), request)
        self._write(first_line(command, ok=True) + "\n")
        self._write(f"play {self.move(player, (request, kata))}\n\n")

    def vertex(self, action: int) -> str:
        """Returns an action as GTP writes it."""
        return write_vertex(action, *self.board)

    @property
    def _most(self) -> int:
        """Simulations that a tree has room for."""
        return most_simulations(self._trained.game)

    def _ponder(self) -> None:
        """Searches the position until the next line comes, or a tree is full. Blocks.

        What is found is in the tree, which the next search goes on from if the move
        that comes is one of it.
        """
        position = self.position
        if position.state.is_terminal() or self._is_asked():
            return
        limits, begun_s = Limits(self._most), time.monotonic()
        self._ponders = self._searches.ponder(
            lambda: self.search(
                position, limits, begun_s, lambda analysis: self._is_asked()
            )
        )

    def _answer(self, command: Command) -> None:
        handler = self._handlers.get(command.name)
        try:
            if handler is None:
                raise GtpError("unknown command")
            text = handler(self, command)
        except (GtpError, TengenError, _core.CoreError) as error:
            self._write(answer_text(command, str(error), ok=False))
        else:
            if text is not None:
                self._write(answer_text(command, text))

    def _is_asked(self) -> bool:
        """Returns whether there is a next line, or the input has ended."""
        return self._lines.peek()[1]

    def _is_stopped(self) -> bool:
        """Returns whether the next line is ``stop``, or GoGui's ``# interrupt``.

        Nothing else ends the search of a move: scripts send all their lines at once.
        """
        line, _ = self._lines.peek()
        if line is None:
            return False
        command = parse_line(line)
        is_stop = command is not None and command.name == "stop"
        return is_stop or line.strip() == INTERRUPT

    def _search_aloud(
        self,
        position: Position,
        limits: Limits,
        begun_s: float,
        request: AnalysisRequest,
        kata: bool,
        *,
        stops: Callable[[], bool],
    ) -> Analysis:
        """Searches as ``search``, and writes what it finds at an interval.

        Args:
            position: As for ``search``.
            limits: As for ``search``.
            begun_s: As for ``search``.
            request: What to write.
            kata: Whether as KataGo does.
            stops: Called between slices; True ends the search.
        """
        forecast = None
        if kata and (request.with_root or request.with_ownership):
            forecast = self.forecast(position)
        shown_s = time.monotonic()

        def show(found: Analysis) -> None:
            line = info_line(found, request, self.board, kata=kata, forecast=forecast)
            self._write(line + "\n")

        def between(analysis: Callable[[], Analysis]) -> bool:
            nonlocal shown_s
            if time.monotonic() - shown_s >= request.interval_s:
                show(analysis())
                shown_s = time.monotonic()
            return stops()

        left_out = (*request.left_out, *position.closing_pass)
        found = self.search(position, limits, begun_s, between, left_out)
        show(found)
        return found


def _check_left(position: Position, request: AnalysisRequest) -> None:
    """Raises GtpError where a request leaves no move to a position."""
    player = position.state.to_play
    out = {action for side, action, _ in request.left_out if side == player}
    if out:
        out.update(action for _, action, _ in position.closing_pass)
    legal = position.state.legal_actions()
    if len(legal) > 0 and out.issuperset(map(int, legal)):
        raise GtpError("no move is allowed")


Handler: TypeAlias = Callable[[Engine, Command], str | None]
"""Answers a command: the text, or None where it has written the answer itself."""
