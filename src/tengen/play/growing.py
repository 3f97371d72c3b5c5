"""Search results and their display, and searches that can be extended in slices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeAlias

from tengen.evaluation.searcher import Searcher
from tengen.games import Framed, open_game, position_after
from tengen.games.drawing import (
    FRAGMENT_STYLE,
    Heat,
    Markup,
    element,
    position_figure,
    table,
    text,
)
from tengen.play.board import make_board_text

Draw: TypeAlias = Callable[[Sequence[int], Sequence[float], int], int]


@dataclass(frozen=True)
class ActionAnalysis:
    """The search statistics of one legal action."""

    action: int
    """The action's number in the game."""
    visits: int
    """The action's visit count: simulations that began with the action."""
    prior: float
    """The network's probability of the action, in [0, 1], among searched actions."""
    value_to_play: float
    """Mean value of the action for the side to move, in [-1, 1]; 0 if not visited."""
    policy: float
    """The search's probability of the action, in [0, 1]; sums to 1 over all actions."""
    score_to_play: float | None = None
    """Mean final score after the action for the side to move, in points; None if the
    action is not visited or the network does not estimate scores."""
    standard_error: float = 0.0
    """Standard error of ``utility_to_play``; 0 if exact or not estimated."""
    utility_to_play: float = 0.0
    """Mean utility, which the search maximizes: the value plus any weighted score."""
    variation: tuple[int, ...] = ()
    """The principal variation, beginning with the action; empty unless requested."""


@dataclass(frozen=True)
class Analysis:
    """The result of searching a position."""

    value_to_play: float
    """Value of the position for the side to move, in [-1, 1]; 1: a certain win."""
    best_action: int
    """The action that the search rates best."""
    num_simulations: int
    """Number of simulations run; fewer than requested if the position was proven."""
    is_proven: bool
    """Whether ``value_to_play`` is exact: the search proved it from terminal positions
    and from positions that the rules decide within two moves or by a forced win.
    Excluded actions do not count."""
    actions: tuple[ActionAnalysis, ...]
    """The legal actions except excluded ones, the best first, then by visit count. In
    games with decisive actions, if none is excluded: only those that win at once, or
    only those that prevent the opponent from winning at once, if there are such; or
    only the first move of a forced win."""
    network_value_to_play: float = 0.0
    """The network's value estimate for the position, without a search."""
    score_to_play: float | None = None
    """Mean final score for the side to move, in points; None if the network does not
    estimate scores."""
    task: str = field(default="", repr=False, compare=False)
    """The game's name, used to draw the position in notebooks; empty: no drawing."""
    moves: tuple[int, ...] = field(default=(), repr=False, compare=False)
    """The actions that led to the position."""
    drawn_action: int | None = None
    """The action that a player of a weak level sampled; None for other players."""

    @property
    def action_to_play(self) -> int:
        """The action to play: ``drawn_action`` if set, else ``best_action``."""
        return self.best_action if self.drawn_action is None else self.drawn_action

    def __str__(self) -> str:
        return analysis_text(self)

    def _repr_html_(self) -> str:
        return analysis_html(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(str(self))


@dataclass(frozen=True)
class Contest:
    """A comparison of the two most visited moves at the root of a search tree."""

    most_visits: int
    """Visit count of the most visited move."""
    second_visits: int
    """Visit count of the second most visited move; 0 if there is no second move."""
    is_best: bool
    """Whether the search also rates the most visited move best."""
    has_best_value: bool
    """Whether the most visited move has at least the value of the second move."""


class GrowingSearch:
    """A search of one position that can be extended. Not thread-safe.

    Args:
        searcher: A searcher that no other search uses, and that has begun the search
            with 0 simulations.
        result: The core's result of the search with 0 simulations.
        lock: Held in each ``grow``, because other searches share the model.
        framed: The game, in the frame that the searcher searches.
        moves: The actions that led to the position.
        draw: Samples the action to play, as for ``to_analysis``.
    """

    def __init__(
        self,
        searcher: Searcher,
        result: Any,
        lock: Lock,
        framed: Framed,
        moves: Sequence[int],
        draw: Draw | None = None,
    ) -> None:
        self._draw = draw
        self._searcher = searcher
        self._moves = moves
        self._framed = framed
        self._result = result
        self._lock = lock

    @property
    def num_simulations(self) -> int:
        """The number of simulations run so far."""
        return int(self._result.num_simulations)

    @property
    def is_proven(self) -> bool:
        """Whether the result is proven; more simulations cannot change it."""
        return bool(self._result.proof != 0)

    def contest(self) -> Contest:
        """Returns a comparison of the two most visited moves of the search."""
        first, *others = sorted(self._result.actions, key=lambda row: -row.visits)[:2]
        is_best = self._result.best_action == first.action
        if not others:
            return Contest(first.visits, 0, is_best, has_best_value=True)
        second = others[0]
        has_best_value = first.value_to_play >= second.value_to_play
        return Contest(first.visits, second.visits, is_best, has_best_value)

    def grow(self, num_simulations: int) -> None:
        """Runs up to ``num_simulations`` more; stops early if the result is proven.

        Blocks, without the GIL.

        Raises:
            CoreError: The total would exceed 2**24 simulations.
            Exception: The backend raised this exception, which ends the search.
        """
        with self._lock:
            total = self.num_simulations + num_simulations
            self._result = self._searcher.extend(total)

    def analysis(self, variation_length: int = 0) -> Analysis:
        """Returns the current result of the search.

        Args:
            variation_length: The maximum length of principal variations, 0 for none.
        """
        return to_analysis(
            self._result,
            self._framed,
            self._moves,
            lambda action: self._searcher.variation(action, variation_length),
            self._draw,
        )


def to_analysis(
    result: Any,
    framed: Framed,
    moves: Sequence[int],
    variation_of: Callable[[int], Sequence[int]] = lambda action: (),
    draw: Draw | None = None,
) -> Analysis:
    """Returns the core's search result as an ``Analysis``.

    Args:
        result: The core's result, with action numbers of the frame.
        framed: The searched game.
        moves: The actions that led to the position.
        variation_of: Returns the principal variation that begins with an action.
        draw: Samples the action to play from the actions, their priors and the best
            action; None to play the best action.
    """
    best = framed.from_frame(result.best_action)
    actions = [
        ActionAnalysis(
            action=framed.from_frame(a.action),
            visits=a.visits,
            prior=a.prior,
            value_to_play=a.value_to_play,
            policy=a.policy,
            score_to_play=a.score_to_play if result.has_scores and a.visits else None,
            standard_error=a.standard_error,
            utility_to_play=a.utility_to_play,
            variation=tuple(map(framed.from_frame, variation_of(a.action))),
        )
        for a in result.actions
    ]
    drawn = None
    if draw is not None:
        drawn = draw([a.action for a in actions], [a.prior for a in actions], best)
    actions.sort(key=lambda a: (a.action != best, -a.visits, -a.prior, a.action))
    return Analysis(
        value_to_play=result.root_value_to_play,
        network_value_to_play=result.network_value_to_play,
        best_action=best,
        num_simulations=result.num_simulations,
        is_proven=result.proof != 0,
        actions=tuple(actions),
        score_to_play=result.root_score_to_play if result.has_scores else None,
        task=framed.game.name,
        moves=tuple(map(int, moves)),
        drawn_action=drawn,
    )


_Write: TypeAlias = Callable[[int], str]

_MOST_ROWS = 8
_COLUMNS = ("move", "visits", "policy", "prior", "value")


def analysis_text(found: Analysis) -> str:
    """Returns a search result as text: a summary and a table of the best moves."""
    write = _writer(found)
    rows = [_COLUMNS, *(_row(action, write) for action in found.actions[:_MOST_ROWS])]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    ]
    return "\n".join([_verdict(found, write), *lines, *_rest(found)])


def analysis_html(found: Analysis) -> str:
    """Returns a search result as HTML: a board coloured by policy, a table of moves."""
    write = _writer(found)
    verdict = _verdict(found, write)
    rows = [_row(action, write) for action in found.actions[:_MOST_ROWS]]
    told = element("p", text(verdict))
    rest = [element("p", text(line)) for line in _rest(found)]
    listed = element("div", told, table("The best moves", _COLUMNS, rows), *rest)
    board = [_board(found, verdict, write)] if found.task else []
    return element("div", *board, listed, style=FRAGMENT_STYLE)


def _board(found: Analysis, verdict: str, write: _Write) -> Markup:
    game = open_game(found.task)
    state = position_after(game, found.moves)
    heats = {
        action.action: Heat(action.policy, _told(action, write))
        for action in found.actions
    }
    drawn = position_figure(
        str(state),
        f"{game.name} at ply {state.ply}: {verdict}",
        layout=game.policy_layout,
        last=found.moves[-1] if found.moves else None,
        heats=heats,
    )
    return element("div", drawn, style="flex:0 1 24rem;min-width:12rem")


def _verdict(found: Analysis, write: _Write) -> str:
    words = [
        f"best move {write(found.best_action)}",
        f"value {found.value_to_play:+.2f} to play",
    ]
    if found.score_to_play is not None:
        words.append(f"score {found.score_to_play:+.1f}")
    words.append(f"{found.num_simulations:,} simulations")
    if found.is_proven:
        words.append("proven")
    return ", ".join(words)


def _rest(found: Analysis) -> list[str]:
    num_left = len(found.actions) - _MOST_ROWS
    return [f"and {num_left} more"] if num_left > 0 else []


def _row(action: ActionAnalysis, write: _Write) -> tuple[str, ...]:
    return (
        write(action.action),
        f"{action.visits:,}",
        f"{100 * action.policy:.1f} %",
        f"{100 * action.prior:.1f} %",
        f"{action.value_to_play:+.2f}" if action.visits else "-",
    )


def _told(action: ActionAnalysis, write: _Write) -> str:
    move, *cells = _row(action, write)
    named = zip(_COLUMNS[1:], cells, strict=True)
    return ", ".join([move, *(f"{column} {cell}" for column, cell in named)])


def _writer(found: Analysis) -> _Write:
    """Returns a function that formats actions in the usual notation of the game."""
    return make_board_text(open_game(found.task)).write if found.task else str
