"""Evaluates models with matches, Elo ratings, the gate, and episodes of environments.

``play_match`` plays a match between two players, ``rate_generation`` rates a model
against fixed anchors, and ``judge`` decides whether a candidate is published.
``play_episodes`` evaluates an agent in an environment. Importing this package does not
import torch.
"""

from __future__ import annotations

from tengen.evaluation.elo import (
    PairedTally,
    Tally,
    elo_of_score,
    expected_score,
    log_likelihood_ratio,
    sprt_bounds,
)
from tengen.evaluation.episodes.film import MAX_FILMS, FilmFile, Films
from tengen.evaluation.episodes.play import (
    MAX_STEPS,
    Acting,
    ActingMode,
    Recorder,
    Side,
    play_episodes,
)
from tengen.evaluation.episodes.report import EpisodesReport
from tengen.evaluation.gate import (
    AcceptAllGate,
    GateConfig,
    GateResults,
    GateVerdict,
    MatchGate,
    PlayedGate,
    SprtGate,
    decide,
    judge,
)
from tengen.evaluation.match import (
    MatchReport,
    MatchStopped,
    play_match,
    stopped_by,
)
from tengen.evaluation.named_players import fixed_player, open_player
from tengen.evaluation.played_game import (
    GAMES_FILE,
    MatchJournal,
    PlayedGame,
    games_jsonl,
    write_games,
)
from tengen.evaluation.players import (
    GomocupPlayer,
    GtpPlayer,
    MatchPlayer,
    MctsPlayer,
    ModelPlayer,
    RandomPlayer,
)
from tengen.evaluation.ratings.anchors import Anchor, measure_anchors, shipped_pairings
from tengen.evaluation.ratings.fit import Pairing, fit_ratings
from tengen.evaluation.ratings.ladder import LadderConfig, rate_generation, run_ratings
from tengen.evaluation.ratings.records import (
    MatchRecord,
    publish_record,
    read_record,
    read_records,
)
from tengen.evaluation.target_config import TargetConfig

__all__ = [
    "GAMES_FILE",
    "MAX_FILMS",
    "MAX_STEPS",
    "AcceptAllGate",
    "Acting",
    "ActingMode",
    "Anchor",
    "EpisodesReport",
    "FilmFile",
    "Films",
    "GateConfig",
    "GateResults",
    "GateVerdict",
    "GomocupPlayer",
    "GtpPlayer",
    "LadderConfig",
    "MatchGate",
    "MatchJournal",
    "MatchPlayer",
    "MatchRecord",
    "MatchReport",
    "MatchStopped",
    "MctsPlayer",
    "ModelPlayer",
    "PairedTally",
    "Pairing",
    "PlayedGame",
    "PlayedGate",
    "RandomPlayer",
    "Recorder",
    "Side",
    "SprtGate",
    "Tally",
    "TargetConfig",
    "decide",
    "elo_of_score",
    "expected_score",
    "fit_ratings",
    "fixed_player",
    "games_jsonl",
    "judge",
    "log_likelihood_ratio",
    "measure_anchors",
    "open_player",
    "play_episodes",
    "play_match",
    "publish_record",
    "rate_generation",
    "read_record",
    "read_records",
    "run_ratings",
    "shipped_pairings",
    "sprt_bounds",
    "stopped_by",
    "write_games",
]
