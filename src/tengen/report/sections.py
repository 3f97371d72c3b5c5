"""What a report has of a run, part by part; each reads the files of its part alone."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tengen.config import from_dict
from tengen.drawing import (
    Markup,
    chart_svg,
    details,
    element,
    fragment,
    position_figure,
    table,
    text,
)
from tengen.errors import RunError, os_reason
from tengen.evaluation import LadderConfig, run_ratings
from tengen.games import Game, check_typed, is_program, open_game
from tengen.observe.roles import has_actors, of_agent
from tengen.observe.status import read_status, status_rows
from tengen.play.board import make_board_text
from tengen.report.curves import read_curves
from tengen.report.kept import KeptGame, read_kept_games
from tengen.run import RunDirectory
from tengen.search import PlayConfig

__all__ = ["SECTIONS", "Source"]

_NUM_GAMES = 4
_MOST_MODELS = 200
_MOST_MOVES = 800
_MOST_STATES = 200
_MOST_SETTINGS = 1000
_MOST_CHARACTERS = 300
_MOST_CODE_BYTES = 20_000


@dataclass(frozen=True)
class Source:
    """The run that is told of."""

    run: RunDirectory
    """Its directory; ``run.json`` is there."""
    typed: str | None
    """The task as the user typed it, or None."""

    def content(self) -> dict[str, Any]:
        """Returns what ``run.json`` has.

        Raises:
            UsageError: It is of a newer schema.
            RunError: It is damaged.
        """
        return self.run.read_run()

    def task(self) -> str:
        """Returns the run's task, empty for a store alone."""
        return str(self.content()["config"].get("task", ""))


def state(source: Source) -> Markup:
    """Returns where the run is and what limits it, as ``tengen status`` says it."""
    told = status_rows(read_status(source.run))[:_MOST_STATES]
    rows = [(name, _short(words)) for name, words in told]
    return table("As tengen status says it", ("what", "now"), rows, has_head=False)


def learning(source: Source) -> Markup:
    """Returns the curves, and their numbers."""
    found = read_curves(source.run)
    if not found.rows:
        return _soft("It has learned nothing yet.")
    figures = [element("figure", chart_svg(chart)) for chart in found.charts()]
    drawn = element("div", *figures, class_="row")
    return fragment((drawn, details("Numbers of the curves", found.table())))


def ratings(source: Source) -> Markup:
    """Returns the ratings of the run's models, with errors."""
    run, content = source.run, source.content()
    if has_actors(content):
        return _soft("Environments have returns, and no ratings.")
    config = content["config"]
    ladder = from_dict(LadderConfig, of_agent(config, "rating") or {}, "agent.rating")
    play = from_dict(PlayConfig, of_agent(config, "play") or {}, "agent.play")
    book = None
    if ladder.book:
        # Roles know of agents, which import torch.
        from tengen.roles import read_config, run_book

        book = run_book(read_config(run), run)
    found = run_ratings(run, source.task(), ladder, play, book)
    if not found:
        return _soft("No model is rated yet.")
    rows = [
        (name, f"{one.elo:.0f}", f"{one.error:.0f}", f"{one.num_games:,}")
        for name, one in list(found.items())[-_MOST_MODELS:]
    ]
    caption = (
        f"Elo of models at {ladder.num_simulations} simulations a move; "
        f"random play is 0"
    )
    columns = ("model", "Elo", "half the 95 % interval", "games")
    return table(caption, columns, rows)


def kept_games(source: Source) -> Markup:
    """Returns a few games that the run kept, the last position of each drawn."""
    if has_actors(source.content()):
        return _soft(
            f"Environments keep no episodes; tengen eval {source.run.path} --video "
            f"FOLDER films some."
        )
    games = read_kept_games(source.run, _NUM_GAMES)
    if not games:
        return _soft("No match has kept games yet.")
    task = source.task()
    if source.typed is not None or not is_program(task):
        check_typed(task, source.typed, source.run.path)
        shown = [_drawn(game, open_game(game.game or task)) for game in games]
    else:
        why = f"The game is a program, which --task {task} lets this command import."
        shown = [_soft(why), *(_listed(game, map(str, game.moves)) for game in games)]
    return element("div", *shown, class_="row")


def settings(source: Source) -> Markup:
    """Returns the resolved config and what was measured, a row a setting."""
    content = source.content()
    rows = [
        row
        for part in ("config", "measured")
        for row in _flat("" if part == "config" else part, content.get(part, {}))
    ]
    told = rows[:_MOST_SETTINGS]
    left = len(rows) - len(told)
    caption = f"run.json, {len(told)} settings" + (f" of {len(rows)}" if left else "")
    listed = table(caption, ("setting", "value"), told)
    return details(f"{len(rows)} settings", listed)


def code(source: Source) -> Markup:
    """Returns which code, libraries and machines trained the run."""
    path = source.run.path / "code.txt"
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return _soft("No code has trained it yet.")
    except OSError as error:
        raise RunError(
            f"code.txt ({path}) cannot be read, {os_reason(error)}; check the file"
        ) from error
    blocks = data[-_MOST_CODE_BYTES:].decode(errors="replace").strip().split("\n\n")
    shown = [element("pre", text(block)) for block in reversed(blocks)]
    if len(shown) == 1:
        return shown[0]
    earlier = details(f"{len(shown) - 1} earlier", *shown[1:])
    return fragment((shown[0], earlier))


SECTIONS: tuple[tuple[str, Callable[[Source], Markup]], ...] = (
    ("State", state),
    ("Curves", learning),
    ("Ratings", ratings),
    ("Games", kept_games),
    ("Settings", settings),
    ("Code and machine", code),
)
"""Titles and what makes each part; one that cannot raises UsageError or RunError."""


def _drawn(kept: KeptGame, game: Game) -> Markup:
    """Returns a game by its last position.

    Raises:
        RunError: A move is not legal.
    """
    position = game.new_state()
    try:
        for action in kept.moves:
            position.apply(action)
    except ValueError as error:
        raise RunError(
            f"game (of {kept.match}) is damaged, {error}; remove its file to do without"
        ) from None
    figure = position_figure(
        str(position),
        f"{kept.first} against {kept.second}, ply {len(kept.moves)}",
        layout=game.policy_layout,
        last=kept.moves[-1] if kept.moves else None,
    )
    write = make_board_text(game).write
    return _listed(kept, map(write, kept.moves), figure)


def _listed(kept: KeptGame, moves: Iterator[str], *figure: Markup) -> Markup:
    result = kept.result or "result not known"
    heading = f"{kept.first} (first player) against {kept.second}: {result}"
    first = itertools.islice(moves, _MOST_MOVES)
    words = " ".join(f"{i}. {move}" for i, move in enumerate(first, 1))
    words += " ..." if len(kept.moves) > _MOST_MOVES else ""
    return element(
        "section",
        element("h3", text(_short(heading))),
        *figure,
        element("p", text(_short(kept.match)), class_="soft"),
        details(f"{len(kept.moves)} moves", element("p", text(words))),
        class_="narrow",
    )


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _flat(f"{name}.{key}" if name else str(key), each)
    else:
        yield _short(name), _short(json.dumps(value))


def _short(words: str) -> str:
    if len(words) <= _MOST_CHARACTERS:
        return words
    return f"{words[:_MOST_CHARACTERS]} ... ({len(words):,} characters)"


def _soft(words: str) -> Markup:
    return element("p", text(words), class_="soft")
