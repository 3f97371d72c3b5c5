"""Rating each generation on the ladder of anchors, a few games at a time."""

from __future__ import annotations

import hashlib
import itertools
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.evaluation.match import MAX_GAMES, check_moves, play_match, stopped_by
from tengen.evaluation.named_players import fixed_player
from tengen.evaluation.players import ModelPlayer
from tengen.evaluation.ratings.anchors import (
    Anchor,
    fixed_players,
    measure_anchors,
    opened_anchor,
    rate_anchors,
    shipped_pairings,
)
from tengen.evaluation.ratings.fit import Link, Pairing, Rating, fit_ratings
from tengen.evaluation.ratings.records import MatchRecord, publish_record, read_records
from tengen.games import Book, Game
from tengen.run import RunDirectory
from tengen.search import PlayConfig

__all__ = ["LadderConfig", "nearest_anchor", "rate_generation", "run_ratings"]

# Elo by which strength is expected to change while training grows by a factor of e.
_DRIFT = 400.0


@dataclass(frozen=True, kw_only=True)
class LadderConfig:
    """How models are rated while a run goes on."""

    num_games: int = bounded(16, 2, MAX_GAMES)
    """Games a model plays, at least 2."""
    round_games: int = bounded(8, 2, MAX_GAMES)
    """Games against one anchor before the next is chosen, at least 2."""
    anchor_games: int = bounded(20, 2, MAX_GAMES)
    """Games of two anchors that never met, for a game without a measured ladder."""
    final_games: int = bounded(40, 0, MAX_GAMES)
    """Games against ``final_opponent`` when ``tengen train`` ends; 0 plays none."""
    final_opponent: str = "mcts:1000"
    """``random`` or ``mcts:N``."""
    num_simulations: int = 64
    """Simulations a move of the model, at least 1."""
    opening_plies: int = 2
    """Random plies that each game begins with."""
    book: bool = False
    """Whether each begins with an opening of ``agent.book`` before these. The anchors
    are measured without."""
    time_share: float = bounded(
        0.05, 0, 1, below=True, rule="must be at least 0 and below 1; use 0.05"
    )
    """Most of a run's time that rating takes, in [0, 1); 0 rates no model."""
    anchors: tuple[str, ...] = (
        "random",
        "mcts:30",
        "mcts:100",
        "mcts:300",
        "mcts:1000",
        "mcts:3000",
        "mcts:10000",
    )
    """The ladder, weakest first: random, then mcts:N and, in Go, katago:FILE (a network
    of KataGo's, at ``num_simulations``)."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        check_moves(self.num_simulations, self.opening_plies)
        fixed_players(self.anchors)
        check(
            fixed_player(self.final_opponent) is not None,
            "final_opponent",
            self.final_opponent,
            "must be random or mcts:N; name a player that never changes",
        )


def rate_generation(
    run: RunDirectory,
    number: int,
    player: ModelPlayer,
    game: Game,
    config: LadderConfig,
    *,
    play: PlayConfig | None = None,
    book: Book | None = None,
    seed: int = 0,
    num_threads: int = 1,
    time_limit_s: float | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> Rating:
    """Plays a model against the anchors that tell most of it; returns its rating.

    Each round it meets the anchor whose score against it should be nearest to a half,
    where a game tells most, and the result is published as
    ``RUN/eval/<model>-<n>.json``. The first round starts from the rating of the newest
    model that has one. Blocks while games are played.

    Args:
        run: Where results are kept. One process rates a run at a time.
        number: The model's number in ``RUN/models``.
        player: The model.
        game: The game.
        config: How many games, and against whom.
        play: How the model plays, as ``player`` does; None as usual.
        book: What games begin with; None for random plies alone.
        seed: Of the run; rounds draw theirs from it.
        num_threads: Threads that play.
        time_limit_s: No round begins later than this; the first always does.
        stop: Asked ten times a second; True ends it.

    Raises:
        MatchStopped: ``stop`` ended a round, which is not recorded; those before are.
        RunError: The disk refuses, or a record is damaged.
    """
    started_s = time.monotonic()
    play = play or PlayConfig()
    name = f"{number:06d}"
    num_left = config.num_games
    while num_left > 0:
        known = run_ratings(run, game.name, config, play, book)
        estimate = _estimate(known, name)
        anchors = _anchors_around(run, game, config, estimate, num_threads, stop)
        anchor = nearest_anchor(anchors, estimate)
        num_rounds = sum(r.a == name for r in read_records(run))
        round_seed = _round_seed(seed, number, num_rounds)
        # The last round takes a game that would be left alone.
        num_games = min(config.round_games, num_left)
        num_games += num_left - num_games == 1
        tally = play_match(
            game,
            player,
            opened_anchor(anchor.player, game, num_threads),
            num_games=num_games,
            num_simulations=config.num_simulations,
            seed=round_seed,
            num_threads=num_threads,
            opening_plies=config.opening_plies,
            book=book,
            watch=stopped_by(stop),
        ).tally
        record = MatchRecord(
            task=game.name,
            a=name,
            b=anchor.player.name,
            wins_a=tally.wins,
            draws=tally.draws,
            wins_b=tally.losses,
            num_simulations=config.num_simulations,
            opening_plies=config.opening_plies,
            book="" if book is None else book.digest,
            seed=round_seed,
            play=play,
        )
        publish_record(run, name, record)
        num_left -= num_games
        if time_limit_s is not None and time.monotonic() - started_s > time_limit_s:
            break
    return run_ratings(run, game.name, config, play, book)[name]


def run_ratings(
    run: RunDirectory,
    task: str,
    config: LadderConfig,
    play: PlayConfig | None = None,
    book: Book | None = None,
) -> dict[str, Rating]:
    """Returns the ratings of all rated models of a run by number, six digits.

    From the files of ``RUN/eval`` alone. Only matches at ``config.num_simulations`` in
    which models played by ``play`` (None: as usual), and which began with ``book``
    (None: with random plies), count: with more simulations, or another search, a model
    is another player.

    Raises:
        RunError: A record is damaged.
    """
    records = [record for record in read_records(run) if record.task == task]
    pairings = [record.to_pairing() for record in records]
    anchors = rate_anchors(
        fixed_players(config.anchors, config.num_simulations),
        [*shipped_pairings(task), *pairings],
    )
    fixed = {anchor.player.name: anchor.elo for anchor in anchors}
    games: list[Pairing] = [
        record.to_pairing()
        for record in records
        if record.num_simulations == config.num_simulations
        and record.play == (play or PlayConfig())
        and record.book == ("" if book is None else book.digest)
        and record.a.isdecimal()
        and record.b in fixed
    ]
    ratings = fit_ratings(games, fixed, _links({game.a for game in games}))
    return {
        name: rating for name, rating in sorted(ratings.items()) if name.isdecimal()
    }


def _links(models: Iterable[str]) -> list[Link]:
    """Ties each rated model to the one before it.

    Strength grows about as the logarithm of training, so that is the scale on which a
    difference is expected: much in the first generations, little in the hundredth.
    """
    names = sorted(models)
    return [
        Link(later, earlier, _DRIFT * math.sqrt(math.log((b + 1) / (a + 1))))
        for earlier, later in itertools.pairwise(names)
        for a, b in [(int(earlier), int(later))]
    ]


def _anchors_around(
    run: RunDirectory,
    game: Game,
    config: LadderConfig,
    elo: float,
    num_threads: int,
    stop: Callable[[], bool],
) -> list[Anchor]:
    """Returns the ladder up to the first anchor above ``elo``.

    Higher ones are not measured before a model needs them: strong anchors are slow.
    """
    players = fixed_players(config.anchors, config.num_simulations)
    height = 1
    while True:
        height += 1
        anchors = measure_anchors(
            run,
            game,
            players[:height],
            num_games=config.anchor_games,
            num_simulations=config.num_simulations,
            num_threads=num_threads,
            opening_plies=config.opening_plies,
            stop=stop,
        )
        if anchors[-1].elo > elo or height >= len(players):
            return anchors


def nearest_anchor(anchors: list[Anchor], elo: float) -> Anchor:
    """Returns the anchor rated nearest to ``elo``; of two as near, the lower one.

    A game tells most where either result is as likely: its information is p (1 - p).
    """
    return min(anchors, key=lambda anchor: (abs(anchor.elo - elo), anchor.elo))


def _estimate(ratings: dict[str, Rating], name: str) -> float:
    """Returns the model's rating, else the newest model's before it, else random's."""
    earlier = [known for known in ratings if known <= name]
    return ratings[max(earlier)].elo if earlier else 0.0


def _round_seed(seed: int, number: int, num_rounds: int) -> int:
    """Returns 63 bits of their own for each round of a run."""
    text = f"rating {seed} {number} {num_rounds}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1
