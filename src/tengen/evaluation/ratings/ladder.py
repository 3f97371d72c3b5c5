"""Rates the models of a run on an Elo ladder of fixed anchors."""

from __future__ import annotations

import hashlib
import itertools
import math
import time
from collections.abc import Callable, Iterable, Sequence
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

# Prior standard deviation, in Elo, of the change in rating when training grows e-fold.
_DRIFT = 400.0


@dataclass(frozen=True, kw_only=True)
class LadderConfig:
    """Settings for rating a run's models while the run trains."""

    num_games: int = bounded(16, 2, MAX_GAMES)
    """Number of games that determine a model's rating, at least 2."""
    round_games: int = bounded(8, 2, MAX_GAMES)
    """Number of games per round, at least 2. A round is played against one anchor."""
    anchor_games: int = bounded(20, 2, MAX_GAMES)
    """Number of games per match between anchors, if the game has no shipped results."""
    final_games: int = bounded(40, 0, MAX_GAMES)
    """Number of games against ``final_opponent`` at the end of training; 0 for none."""
    final_opponent: str = "bundled"
    """The opponent of the match at the end of training: ``random``, ``mcts:N``, or
    ``bundled`` for the game's bundled player (``mcts:1000`` if it has none)."""
    num_simulations: int = 64
    """Simulations per move of the model, at least 1."""
    opening_plies: int = 2
    """Number of random plies at the start of each game."""
    book: bool = False
    """Whether each game starts with an opening from ``agent.book``, before random
    plies. Matches between anchors use no book."""
    time_share: float = bounded(
        0.05, 0, 1, below=True, rule="must be at least 0 and below 1; use 0.05"
    )
    """Maximum share of a run's time for rating models, in [0, 1); 0 disables rating."""
    anchors: tuple[str, ...] = (
        "random",
        "mcts:30",
        "mcts:100",
        "mcts:300",
        "mcts:1000",
        "mcts:3000",
        "mcts:10000",
    )
    """The anchors, weakest first: random, then mcts:N and, in Go, katago:FILE (a KataGo
    network that searches with ``num_simulations``)."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is invalid."""
        check_fields(self)
        check_moves(self.num_simulations, self.opening_plies)
        fixed_players(self.anchors)
        check(
            self.final_opponent == "bundled"
            or fixed_player(self.final_opponent) is not None,
            "final_opponent",
            self.final_opponent,
            "must be bundled, random or mcts:N; choose one of these",
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
    """Plays a model against anchors near its strength; returns its rating. Blocks.

    In each round the model plays the anchor whose rating is nearest to its own, because
    such games are the most informative. Before the first round, the rating of the
    newest rated model stands in. Each round is recorded as
    ``RUN/eval/<model>-<n>.json``.

    Args:
        run: The run directory, in which one process at a time may rate models.
        number: The model's number in ``RUN/models``.
        player: The player that uses the model.
        game: The game to play.
        config: The settings of the ladder.
        play: Play settings of ``player``, for the record; None for the defaults.
        book: Opening book; None for random openings.
        seed: Seed of the run, from which the seeds of rounds are derived.
        num_threads: Number of threads that play games.
        time_limit_s: Seconds after which no further round begins. None for no limit.
        stop: Called ten times a second; ends the current match if it returns True.

    Raises:
        MatchStopped: ``stop`` ended a round; earlier rounds are recorded.
        RunError: Writing to the disk fails, or a record is damaged.
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
        # If a single game would remain for the next round, add it to this round.
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
    """Returns the ratings of a run's models, by model number with six digits.

    Reads the match records in ``RUN/eval``. Because strength depends on simulations,
    play settings and book, only matches with ``config.num_simulations``, ``play`` (None
    for the defaults) and ``book`` (None for random openings) count.

    Raises:
        RunError: A match record is damaged.
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


def team_ratings(records: Sequence[MatchRecord]) -> dict[str, Rating]:
    """Returns the ratings of a run's models in an environment with several teams.

    Args:
        records: The matches, at least one. The first model in them has rating 0.
    """
    names = sorted({name for r in records for name in (r.a, r.b)}, key=int)
    pairings = [record.to_pairing() for record in records]
    return fit_ratings(pairings, {names[0]: 0.0}, _links(names[1:]))


def _links(models: Iterable[str]) -> list[Link]:
    """Returns priors that link each rated model to the preceding rated model.

    Strength grows roughly with the logarithm of training, so the prior allows larger
    differences between early models than between late ones.
    """
    names = sorted(models, key=int)
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
    """Returns the rated anchors up to the first anchor rated above ``elo``. Blocks.

    The slow matches between stronger anchors are played only once a model needs them.
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
    """Returns the anchor rated nearest to ``elo``; a tie goes to the lower-rated one.

    The Fisher information of a game with winning probability p is p (1 - p), which is
    highest for equally strong players.
    """
    return min(anchors, key=lambda anchor: (abs(anchor.elo - elo), anchor.elo))


def _estimate(ratings: dict[str, Rating], name: str) -> float:
    """Returns the rating of model ``name``, else of the newest earlier one, else 0."""
    earlier = [known for known in ratings if known <= name]
    return ratings[max(earlier)].elo if earlier else 0.0


def _round_seed(seed: int, number: int, num_rounds: int) -> int:
    """Returns the 63-bit match seed of a rating round, different for each round."""
    text = f"rating {seed} {number} {num_rounds}".encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1
