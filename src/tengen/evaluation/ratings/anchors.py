"""Anchors: fixed players, whose ratings define the Elo scale of a game.

The weakest anchor of a ladder is ``random``, rated 0. Stronger anchors are ``mcts:N``
and, in Go, KataGo networks (``katago:FILE``). Matches between neighbours determine
their ratings. For some games tengen ships the results of these matches, measured with
``benchmarks/strength/measure_anchors.py``; otherwise a run plays them once and stores
the results in ``RUN/eval``. If neighbours differ by several hundred Elo, their ratings
have large errors, which confidence intervals of models do not include.
"""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

from tengen.errors import UsageError
from tengen.evaluation.elo import Tally
from tengen.evaluation.match import play_match, stopped_by
from tengen.evaluation.named_players import fixed_player, open_player
from tengen.evaluation.players import MatchPlayer, MctsPlayer, ModelPlayer, RandomPlayer
from tengen.evaluation.ratings.fit import Pairing, fit_ratings
from tengen.evaluation.ratings.records import MatchRecord, publish_record, read_records
from tengen.games import Game
from tengen.models import KATAGO
from tengen.run import RunDirectory, file_sha256


@dataclass(frozen=True)
class KatagoAnchor:
    """The anchor ``katago:FILE``: a KataGo network with a search, opened on demand."""

    word: str
    """The anchor's name on the ladder, ``katago:FILE``."""
    num_simulations: int
    """Number of simulations per move of the network's search, at least 1."""

    @functools.cached_property
    def name(self) -> str:
        """The anchor's name in match records, with the file's digest and simulations.

        If the file cannot be read, the name is ``word``, which occurs in no record.
        """
        try:
            digest = file_sha256(Path(self.word.removeprefix(KATAGO)))
        except OSError:
            return self.word
        return f"{KATAGO}{digest[:12]}:{self.num_simulations}"


FixedPlayer: TypeAlias = RandomPlayer | MctsPlayer | KatagoAnchor
"""A player whose strength never changes, and which can therefore be an anchor."""


@dataclass(frozen=True)
class Anchor:
    """A fixed player on the ladder, with its rating."""

    player: FixedPlayer
    """The player."""
    elo: float
    """The player's Elo rating on the scale on which ``random`` is rated 0."""


def fixed_players(words: Iterable[str], num_simulations: int = 1) -> list[FixedPlayer]:
    """Returns the fixed players that ``words`` names. Opens no file.

    Args:
        words: Player names, weakest first: ``random``, ``mcts:N`` or ``katago:FILE``.
        num_simulations: Simulations per move of KataGo networks.

    Raises:
        UsageError: A word names no fixed player, or the first word is not ``random``.
    """
    players: list[FixedPlayer] = []
    for word in words:
        player: FixedPlayer | None
        if word.startswith(KATAGO) and word != KATAGO:
            player = KatagoAnchor(word, num_simulations)
        else:
            player = fixed_player(word)
        if player is None:
            raise UsageError(
                f"anchor ({word}) must be random, mcts:N or katago:FILE; choose "
                "players that never change"
            )
        players.append(player)
    if not players or players[0].name != "random":
        raise UsageError("anchors must start with random, whose rating is 0; add it")
    return players


def opened_anchor(player: FixedPlayer, game: Game, num_threads: int) -> MatchPlayer:
    """Returns an anchor as a match player. Blocks while a KataGo network is compiled.

    Raises:
        UsageError: A network file cannot be used, or the network cannot play the game.
        RunError: The backend rejects the network.
    """
    if not isinstance(player, KatagoAnchor):
        return player
    opened = open_player(player.word, num_threads=num_threads)
    assert isinstance(opened, ModelPlayer)
    return opened.playing(game.name)


def shipped_pairings(task: str) -> list[Pairing]:
    """Returns the shipped match results between a game's anchors, maybe none."""
    return [
        Pairing(a, b, Tally(wins_a, draws, wins_b))
        for a, b, wins_a, draws, wins_b in _shipped().get(task, [])
    ]


def rate_anchors(
    players: Sequence[FixedPlayer], pairings: Iterable[Pairing]
) -> list[Anchor]:
    """Returns the rated anchors, up to the first pair of neighbours without results.

    Args:
        players: The players of the ladder, weakest first.
        pairings: Match results. Those of other players are ignored.
    """
    known = list(pairings)
    met = {frozenset((p.a, p.b)) for p in known if p.tally.num_games}
    num_rated = 1
    for below, above in itertools.pairwise(players):
        if frozenset((below.name, above.name)) not in met:
            break
        num_rated += 1
    rated = players[:num_rated]
    names = {player.name for player in rated}
    among = [p for p in known if p.a in names and p.b in names]
    ratings = fit_ratings(among, {"random": 0.0})
    return [Anchor(player, ratings[player.name].elo) for player in rated]


def measure_anchors(
    run: RunDirectory,
    game: Game,
    players: Sequence[FixedPlayer],
    *,
    num_games: int = 20,
    num_simulations: int = 64,
    num_threads: int = 1,
    opening_plies: int = 2,
    stop: Callable[[], bool] = lambda: False,
) -> list[Anchor]:
    """Plays the missing matches between neighbours; returns the rated anchors.

    Blocks during the matches. Their seed is fixed, so the same arguments give the same
    ratings in every run.

    Args:
        run: The run directory, which stores results as ``anchor-<name>-<n>.json``.
        game: The game to play.
        players: The players of the ladder, weakest first.
        num_games: Games per match of two neighbours.
        num_simulations: Simulations per move of KataGo networks.
        num_threads: Number of threads that play games.
        opening_plies: Random plies at the start of each game.
        stop: Called ten times a second; ends the current match if it returns True.

    Raises:
        MatchStopped: ``stop`` ended a match; earlier matches are recorded.
        RunError: Writing to the disk fails.
    """
    pairings = shipped_pairings(game.name)
    records = [r for r in read_records(run) if r.task == game.name]
    pairings += [record.to_pairing() for record in records]
    met = {frozenset((p.a, p.b)) for p in pairings if p.tally.num_games}
    for below, above in itertools.pairwise(players):
        if frozenset((below.name, above.name)) in met:
            continue
        tally = play_match(
            game,
            opened_anchor(above, game, num_threads),
            opened_anchor(below, game, num_threads),
            num_games=num_games,
            num_simulations=num_simulations,
            num_threads=num_threads,
            opening_plies=opening_plies,
            watch=stopped_by(stop),
        ).tally
        record = MatchRecord(
            task=game.name,
            a=above.name,
            b=below.name,
            wins_a=tally.wins,
            draws=tally.draws,
            wins_b=tally.losses,
            num_simulations=0,
            opening_plies=opening_plies,
            seed=0,
        )
        publish_record(run, "anchor-" + above.name.replace(":", ""), record)
        pairings.append(record.to_pairing())
    return rate_anchors(players, pairings)


@cache
def _shipped() -> dict[str, list[tuple[str, str, int, int, int]]]:
    """Returns the rows of ``anchors.json``, (a, b, wins_a, draws, wins_b), by task."""
    text = (
        resources.files("tengen.evaluation.ratings")
        .joinpath("anchors.json")
        .read_text()
    )
    content: dict[str, Any] = json.loads(text)
    return {task: [tuple(row) for row in rows] for task, rows in content.items()}
