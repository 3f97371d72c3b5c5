"""Loads the models that users play against, and caches the most recent ones."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from tengen.bundled import (
    Manifest,
    bundled_folder,
    find_level,
    known_name,
    read_manifest,
)
from tengen.errors import UsageError
from tengen.play import AgentPlayer, Player, load
from tengen.run import RunDirectory
from tengen.serve.boards import picture
from tengen.serve.sentences import strength_sentence

Load = Callable[..., Player | AgentPlayer]


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
