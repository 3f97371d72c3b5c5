"""How strong an agent is: matches, ratings over generations, the gate, episodes.

``play_match`` plays two players against each other, ``rate_generation`` rates a
model on a ladder of fixed anchors, ``judge`` decides whether a candidate is
published. ``play_episodes`` is for environments. Importing this imports no torch.
"""

from __future__ import annotations

from tengen.evaluation.elo import Tally, elo_of_score, expected_score
from tengen.evaluation.engines.side import EngineReport
from tengen.evaluation.episodes.acting import Acting, ActingMode
from tengen.evaluation.episodes.film import MAX_FILMS, FilmFile, Films
from tengen.evaluation.episodes.play import MAX_STEPS, EpisodesReport, play_episodes
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
from tengen.evaluation.kept_games import games_jsonl, write_games
from tengen.evaluation.match import (
    MatchReport,
    MatchStopped,
    play_match,
    stopped_by,
)
from tengen.evaluation.match_journal import MatchJournal
from tengen.evaluation.named_players import fixed_player, open_player
from tengen.evaluation.played_game import Dispute, PlayedGame
from tengen.evaluation.players import (
    EnginePlayer,
    GomocupPlayer,
    GtpPlayer,
    MatchPlayer,
    MctsPlayer,
    ModelPlayer,
    RandomPlayer,
)
from tengen.evaluation.ratings.anchors import Anchor, measure_anchors, shipped_pairings
from tengen.evaluation.ratings.fit import Pairing, Rating, fit_ratings
from tengen.evaluation.ratings.ladder import LadderConfig, rate_generation, run_ratings
from tengen.evaluation.ratings.records import (
    MatchRecord,
    publish_record,
    read_record,
    read_records,
)
from tengen.evaluation.sprt import PairedTally, log_likelihood_ratio, sprt_bounds
from tengen.evaluation.targets.config import TargetConfig

__all__ = [
    "MAX_FILMS",
    "MAX_STEPS",
    "AcceptAllGate",
    "Acting",
    "ActingMode",
    "Anchor",
    "Dispute",
    "EnginePlayer",
    "EngineReport",
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
    "Rating",
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
