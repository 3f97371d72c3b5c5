"""A GTP 2 session, in which a controller such as a front end controls a model."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from tengen import __version__, _core
from tengen.errors import TengenError, UsageError
from tengen.games.go_rules import write_vertex
from tengen.play.forecast import Forecast
from tengen.play.growing import Analysis
from tengen.play.gtp.position import MAX_PLIES, Position, Start
from tengen.play.gtp.protocol import (
    INTERRUPT,
    AnalysisRequest,
    Command,
    GtpError,
    answer_text,
    first_line,
    info_line,
    parse_analysis,
    parse_line,
)
from tengen.play.player import Player
from tengen.play.session.clock import Clock
from tengen.play.session.searches import Limits
from tengen.play.session.session import Session


class Resigning:
    """Decides when a side resigns: after several consecutive moves with a low value.

    Args:
        below: The value below which a position counts as lost; -1 to never resign.
        in_handicap: Whether to resign in games with setup stones, too.
    """

    def __init__(self, below: float = -1.0, *, in_handicap: bool = True) -> None:
        self.in_handicap = in_handicap
        self._below = below
        # For each side, its most recent consecutive lost moves, each as the list of the
        # actions before the move.
        self._lost_after: dict[int, list[list[int]]] = {0: [], 1: []}

    def resigns(
        self, player: int, actions: Sequence[int], value_to_play: float
    ) -> bool:
        """Records the value of a side's search; returns whether the side resigns.

        Args:
            player: The side to move in the searched position.
            actions: The actions that led to the searched position. Values recorded on
                another line of play are discarded, such as those before an undo.
            value_to_play: The search's value for ``player``, in [-1, 1].
        """
        now = list(actions)
        seen = self._lost_after[player]
        while seen and not (len(seen[-1]) == len(now) - 2 and now[:-2] == seen[-1]):
            seen.pop()
        if not value_to_play < self._below:
            seen.clear()
        else:
            seen.append(now)
        del seen[: -_core.RESIGN_MOVES]
        return len(seen) == _core.RESIGN_MOVES


class Engine(Session):
    """A GTP session; see ``Session``.

    Args:
        player: The player; its game must be Go.
        handlers: The command handlers, by command name.
        name: The program's name, as sent to the controller.
        resigning: The rule for resigning; None to never resign.
        settings: The other arguments of ``Session``.

    Attributes:
        name: The program's name, as sent to the controller.
        position: The position on the board.
        clock: The clocks of both sides.
    """

    def __init__(
        self,
        player: Player,
        handlers: Mapping[str, Handler],
        *,
        name: str = "tengen",
        resigning: Resigning | None = None,
        **settings: Any,
    ) -> None:
        """Creates the session, measures the search speed and loads auxiliary heads.

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
        super().__init__(player, **settings)
        self.name = name
        self.clock = Clock()
        self._trained = player
        self._handlers = handlers
        self._resigning = resigning or Resigning()
        self._moved_to: Position | None = None
        rules.max_plies = MAX_PLIES
        self.position = self.placed(Start(rules.name, rules.komi))
        self.measure_speed(self.position.actions)
        self.forecast(self.position)

    @property
    def rules(self) -> _core.GoRules:
        """The current rules, without komi and handicap."""
        return _core.parse_go_name(self.position.start.game)

    @property
    def board(self) -> tuple[int, int]:
        """The current board's size as (height, width)."""
        rules = self.rules
        return rules.height, rules.width

    def rules_on(self, height: int, width: int) -> _core.GoRules | None:
        """Returns the rules for a board size; None if the network cannot play it.

        A network trained for several board sizes supports all sizes up to the largest.
        """
        frame, rules = self._trained.game, self.rules
        is_smaller = 2 <= height <= frame.height and 2 <= width <= frame.width
        is_known = is_smaller and self._trained.mixed_sizes
        if (height, width) != (frame.height, frame.width) and not is_known:
            return None
        rules.height, rules.width = height, width
        return rules

    def knows(self, ko: str, may_suicide: bool) -> bool:
        """Returns whether the network was trained for these rules or various rules."""
        rules = _core.parse_go_name(self._trained.game.name)
        is_trained = (ko, may_suicide) == (rules.ko, rules.may_suicide)
        return is_trained or self._trained.mixed_sizes

    @property
    def version(self) -> str:
        """The response to ``version``: the version of tengen, and the model's name."""
        return f"{__version__} {self._trained.name}"

    def placed(self, start: Start, moves: Iterable[tuple[int, int]] = ()) -> Position:
        """Returns the position after ``moves``, and switches the player to its game.

        Raises:
            UsageError: The initial stones or the komi are not valid.
            CoreError: A move is not legal.
        """
        name = start.record().game
        player = self._player
        if name != player.game.name:
            player = self._trained.playing(name)
        position = Position(start, player.game, moves)
        self._player = player
        return position

    def forecast(self, position: Position) -> Forecast | None:
        """Returns the predicted final position; None if the net cannot predict it."""
        return self._player.forecast(position.actions)

    def choose(
        self,
        player: int,
        report: tuple[AnalysisRequest, bool] | None = None,
    ) -> tuple[int, float]:
        """Searches for a move of ``player`` within the limits of its clock. Blocks.

        Args:
            player: The side to move.
            report: The analyses to write during the search, and whether to write them
                in KataGo's dialect; None to write no analyses.

        Returns:
            The action, and the position's value for ``player``, in [-1, 1].
        """
        begun_s = time.monotonic()
        position = self.position.turn_of(player)
        if position.state.is_terminal():
            return position.game.num_actions - 1, 0.0
        height, width = self.board
        where = player, len(position.actions), height * width
        limits = self.move_limits(
            self.clock.budget_s(*where), self.clock.most_s(*where)
        )
        if report is None:
            left_out = position.closing_pass
            found = self.search(position.actions, limits, begun_s, left_out=left_out)
        else:
            found = self._search_aloud(
                position, limits, begun_s, *report, stops=self.is_stopped
            )
        self.clock.spend(player, time.monotonic() - begun_s)
        return found.action_to_play, found.value_to_play

    def move(
        self,
        player: int,
        report: tuple[AnalysisRequest, bool] | None = None,
    ) -> str:
        """Chooses and plays a move; returns its vertex, or ``resign``. Blocks."""
        action, value_to_play = self.choose(player, report)
        actions = self.position.turn_of(player).actions
        start = self.position.start
        has_stones = bool(start.black_stones or start.white_stones)
        may_resign = self._resigning.in_handicap or not has_stones
        if may_resign and self._resigning.resigns(player, actions, value_to_play):
            return "resign"
        self.position = self.position.after(player, action)
        self._moved_to = self.position
        return self.vertex(action)

    def analyse(self, command: Command, *, kata: bool) -> None:
        """Writes analyses of the position until the next line arrives. Blocks."""
        request = parse_analysis(command.words, self.board)
        player = request.player
        position = self.position.going_on()
        if player is not None:
            position = position.turn_of(player)
        _check_left(position, request)
        self._write(first_line(command, ok=True) + "\n")
        if not position.state.is_terminal():

            def is_asked() -> bool:
                return bool(self.lines.waiting())

            limits, begun_s = Limits(self.most), time.monotonic()
            self._search_aloud(position, limits, begun_s, request, kata, stops=is_asked)
        self.lines.peek(wait=True)
        self._write("\n")

    def choose_aloud(self, command: Command, player: int, *, kata: bool) -> None:
        """Chooses and plays a move; writes analyses during the search. Blocks."""
        request = parse_analysis(command.words, self.board)
        _check_left(self.position.turn_of(player), request)
        self._write(first_line(command, ok=True) + "\n")
        self._write(f"play {self.move(player, (request, kata))}\n\n")

    def vertex(self, action: int) -> str:
        """Returns the vertex of an action in GTP's notation."""
        return write_vertex(action, *self.board)

    def answer(self, line: bytes) -> None:
        """Runs the GTP command in ``line`` and writes the response."""
        command = parse_line(line)
        if command is None:
            return
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

    def is_stopped(self) -> bool:
        """Returns whether the next line is ``stop``, or GoGui's ``# interrupt``.

        Other waiting lines do not stop a search, because a script may send its commands
        without waiting for responses.
        """
        line, _ = self.lines.peek()
        if line is None:
            return False
        command = parse_line(line)
        is_stop = command is not None and command.name == "stop"
        return is_stop or line.strip() == INTERRUPT

    def moves_to_ponder(self) -> Sequence[int] | None:
        """Returns the moves so far if the engine has just moved, otherwise None."""
        position = self.position
        is_own = position is self._moved_to and not position.state.is_terminal()
        return position.actions if is_own else None

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
        """Searches a position, and writes analyses at regular intervals.

        Args:
            position: The position to search.
            limits: Limits of the search.
            begun_s: Time at which the move was requested, from ``time.monotonic``.
            request: The analyses to write.
            kata: Whether to write in KataGo's dialect.
            stops: Called between slices of the search; stops it by returning True.
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
        found = self.search(position.actions, limits, begun_s, between, left_out)
        show(found)
        return found


def _check_left(position: Position, request: AnalysisRequest) -> None:
    """Raises GtpError if an analysis request excludes every legal move."""
    player = position.state.to_play
    out = {action for side, action, _ in request.left_out if side == player}
    if out:
        out.update(action for _, action, _ in position.closing_pass)
    legal = position.state.legal_actions()
    if len(legal) > 0 and out.issuperset(map(int, legal)):
        raise GtpError("no move is allowed")


Handler: TypeAlias = Callable[[Engine, Command], str | None]
"""A handler of a GTP command. It returns the response, or None if it has already
written the response itself."""
