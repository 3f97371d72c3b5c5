"""Loads and describes the models that users play against."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from tengen.bundled import (
    Manifest,
    Strength,
    bundled_folder,
    find_level,
    known_name,
    read_manifest,
)
from tengen.errors import UsageError
from tengen.play import AgentPlayer, Player, load
from tengen.run import RunDirectory
from tengen.serve.boards import picture

Load = Callable[..., Player | AgentPlayer]

_SCORE = re.compile(r"score against (?P<opponent>.+?)(, [0-9,]+ simulations?)?")
_SOLVED = re.compile(r"moves that an exact solver calls optimal(, .+)?")
_LINES = re.compile(r"lines not lost, against every reply(, .+)?")
_MCTS = re.compile(r"mcts:([0-9]+)")


class Players:
    """An LRU cache of players: models of runs, and bundled players by level.

    Thread-safe. While a model is loaded, requests for other players wait.

    Args:
        max_players: Maximum number of cached players.
        tasks: Tasks ``module:Class`` that the user typed, which may be imported.
        loads: Loads the player of a model directory, as ``tengen.load`` does.
    """

    def __init__(
        self, max_players: int, tasks: Sequence[str] = (), loads: Load = load
    ) -> None:
        self._max_players = max_players
        self._tasks = set(tasks)
        self._loads = loads
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[str, int | None], Player] = OrderedDict()

    def get(self, run: RunDirectory, number: int | None) -> tuple[int, Player]:
        """Returns a model's number and its player. Blocks while the model is loaded.

        Args:
            run: The run of the model.
            number: Number of the model; None for the run's newest model.

        Raises:
            UsageError: The model does not exist, cannot be used, or is for an
                environment.
            RunError: The backend rejects the model.
        """
        known = run.models.numbers()
        if not known:
            raise UsageError(
                f"run ({run.path}) has no model yet; try again when it has learned"
            )
        found = known[-1] if number is None else number
        if found not in known:
            raise UsageError(
                f"model ({found}) must be one of {known[0]} to {known[-1]}; choose one"
            )
        key = (str(run.path), found)
        return found, self._get(key, lambda: self._load(run, found))

    def get_bundled(self, name: str, level: int | None) -> Player:
        """Returns a bundled player. Blocks while its model is loaded.

        Args:
            name: Name of the player.
            level: The level from 1, the weakest; None for full strength.

        Raises:
            UsageError: The player or the level does not exist, or a file is damaged.
            RunError: The backend rejects the model.
        """
        return self._get((name, level), lambda: self._at_level(name, level))

    def _get(self, key: tuple[str, int | None], load: Callable[[], Player]) -> Player:
        with self._lock:
            if key not in self._kept:
                self._kept[key] = load()
                # An evicted player that is searching is freed after its search.
                while len(self._kept) > self._max_players:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]

    def close(self) -> None:
        """Releases all models; waits for searches in progress."""
        with self._lock:
            kept, self._kept = self._kept, OrderedDict()
        for player in kept.values():
            player.close()

    def _at_level(self, name: str, level: int | None) -> Player:
        """Returns a bundled player; shares the model of a cached level of the player.

        The caller must hold the lock.
        """
        known_name(name)
        strength = None
        if level is not None:
            strength = find_level(read_manifest(name), str(level))
        kept = [player for (one, _), player in self._kept.items() if one == name]
        player = kept[0] if kept else self._loads(bundled_folder(name))
        assert isinstance(player, Player)
        return player.at_level(strength)

    def _load(self, run: RunDirectory, number: int) -> Player:
        task = str(run.read_run()["config"].get("task"))
        typed = task if task in self._tasks else None
        player = self._loads(run.models.entry(number), task=typed)
        if not isinstance(player, Player):
            player.close()
            raise UsageError(
                f"run ({run.path}) acts in the environment {task}; choose a run of a "
                "game"
            )
        return player


def describe_bundled(name: str) -> dict[str, Any]:
    """Returns a bundled player's entry in the list of players, as JSON values.

    Keys: ``id``, the ID in URLs; ``name``; ``net``; ``games``; ``picture`` of the game,
    see ``boards.picture``; ``sentence`` about the strength, or None; and ``strength``,
    a list of objects with ``what``, ``value``, ``low`` and ``high``. If the manifest is
    damaged, the keys are ``id``, ``name`` and ``trouble``, the error message.

    Args:
        name: Name of the player.
    """
    named = {"id": name.replace("/", "~"), "name": name}
    try:
        manifest = read_manifest(name)
    except UsageError as error:
        return {**named, "trouble": str(error)}
    return {
        **named,
        "net": manifest.net,
        "games": manifest.games,
        "picture": picture(manifest.task),
        "sentence": strength_sentence(manifest.strength),
        "strength": [
            {
                "what": row.what,
                "value": row.value,
                "low": row.low,
                "high": row.high,
            }
            for row in manifest.strength
        ],
    }


def strength_sentence(rows: Sequence[Strength]) -> str | None:
    """Returns a sentence about the first measurement whose wording is known, or None.

    Args:
        rows: The measurements of a player, as in its manifest.
    """
    return next(filter(None, map(_sentence, rows)), None)


def _sentence(row: Strength) -> str | None:
    count = row.value * row.number
    if _SOLVED.fullmatch(row.what):
        return (
            f"Plays the best move in {count:,.0f} of {row.number:,} positions, "
            "according to an exact solver."
        )
    if _LINES.fullmatch(row.what):
        if row.value == 1:
            return "Never loses."
        return f"Does not lose {count:,.0f} of {row.number:,} lines of play."
    if match := _SCORE.fullmatch(row.what):
        opponent = _opponent(match["opponent"])
        # A draw counts half: only a full score, or a game without draws, is all wins.
        # GNU Go is the opponent in Go, whose usual komi excludes draws.
        is_whole = round(2 * count) % 2 == 0
        if row.value == 1 or (opponent.startswith("GNU Go") and is_whole):
            return f"Beats {opponent} in {count:,.0f} of {row.number:,} games."
        points = f"{round(2 * count) / 2:,g}"
        return f"Scores {points} of {row.number:,} points against {opponent}."
    return None


def _opponent(name: str) -> str:
    if match := _MCTS.fullmatch(name):
        return f"a search with {int(match[1]):,} random playouts"
    return "random moves" if name == "random" else name


def describe_levels(manifest: Manifest, most_simulations: int) -> list[dict[str, Any]]:
    """Returns a player's levels within the server's limits, as JSON values.

    Args:
        manifest: The manifest of the player.
        most_simulations: The server's maximum simulations per search.
    """
    return [
        {"level": number, "name": level.name, "rating": level.rating}
        for number, level in enumerate(manifest.levels, 1)
        if level.simulations <= most_simulations
    ]
