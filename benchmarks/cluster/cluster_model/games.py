"""Self-play: hosts that play, one with the games, learners, and a gate."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import simpy

from cluster_model.settings import SelfplayCluster
from cluster_model.stations import Process, Station

__all__ = ["GamesResult", "simulate_games"]

_MOST_GAMES = 20_000
_LEAST_CANDIDATES = 6
_WARM_SHARE = 0.3


@dataclass
class GamesResult:
    """What a modelled cluster of self-play did, after it was warm."""

    games_per_s: float
    """Finished and stored."""
    linear: float
    """Of the most that the hosts would play."""
    rows_learned_per_s: float = 0.0
    """Rows of batches, each use counted."""
    samples_per_row: float = 0.0
    """Uses a row that was made."""
    models_per_hour: float = 0.0
    """Candidates that the gate has decided on."""
    utilisation: dict[str, float] = field(default_factory=dict)
    """By role."""


class _Model:
    def __init__(self, cluster: SelfplayCluster, seed: int) -> None:
        self.cluster = cluster
        self.env = env = simpy.Environment()
        self.random = random.Random(seed)
        self.link, self.disk = Station(env), Station(env)
        self.learner, self.gate = Station(env), Station(env)
        self.arrived = env.event()
        self.num_games = self.num_rows = 0
        self.num_learned = self.num_decided = 0
        self.made_rows = 0.0
        self.unused = 0.0
        self.is_gating = False
        evaluations = cluster.rows_per_game * cluster.evaluations_per_row
        speed = cluster.host_cores * cluster.evaluations_per_core_s
        self.game_s = evaluations / speed
        self.match_s = cluster.gate_games * evaluations
        self.match_s /= cluster.gate_cores * cluster.evaluations_per_core_s

    def host(self) -> Process:
        """Plays game after game; many at once, so that one ends every ``game_s``."""
        yield self.env.timeout(self.random.random() * self.game_s)
        while True:
            # Many games of different lengths end as if at random.
            yield self.env.timeout(self.random.expovariate(1 / self.game_s))
            self.env.process(self.store())

    def store(self) -> Process:
        cluster = self.cluster
        yield self.link.work(cluster.game_bytes / cluster.link_bytes_per_s)
        if cluster.link_latency_s:
            yield self.env.timeout(cluster.link_latency_s)
        written_s = cluster.game_bytes / cluster.disk_bytes_per_s
        yield self.disk.work(cluster.disk_game_s + written_s)
        self.num_games += 1
        self.num_rows += 1
        self.made_rows += cluster.rows_per_game
        self.unused += cluster.rows_per_game * cluster.samples_per_row
        if self.made_rows >= cluster.rows_per_candidate and not self.is_gating:
            self.made_rows = 0.0
            self.env.process(self.decide())
        if not self.arrived.triggered:
            self.arrived.succeed()

    def decide(self) -> Process:
        """The gate's match; the next candidate is made when it has ended."""
        self.is_gating = True
        if self.match_s:
            yield self.gate.work(self.match_s)
        self.is_gating = False
        self.num_decided += 1

    def learn(self) -> Process:
        cluster = self.cluster
        step_s = cluster.batch_rows / cluster.num_learners * cluster.learn_row_s
        while True:
            while self.unused < cluster.batch_rows:
                self.arrived = self.env.event()
                yield self.arrived
            self.unused -= cluster.batch_rows
            yield self.learner.work(step_s + cluster.reduce_s)
            self.num_learned += cluster.batch_rows

    def restart(self) -> None:
        for station in (self.link, self.disk, self.learner, self.gate):
            station.restart()
        self.num_games = self.num_learned = self.num_decided = 0


def simulate_games(
    cluster: SelfplayCluster, seed: int = 0, most_games: int = _MOST_GAMES
) -> GamesResult:
    """Returns what a cluster of self-play does; the same seed, the same numbers.

    Args:
        cluster: The cluster.
        seed: Of when games end.
        most_games: That are simulated, about.
    """
    model = _Model(cluster, seed)
    for _ in range(cluster.num_hosts):
        model.env.process(model.host())
    model.env.process(model.learn())
    most = cluster.num_hosts / model.game_s
    per_candidate = cluster.rows_per_candidate / cluster.rows_per_game
    num_games = max(most_games, _LEAST_CANDIDATES * min(per_candidate, most_games))
    until_s = max(num_games / most, _LEAST_CANDIDATES * model.match_s)
    until_s = min(until_s, 4 * num_games / most)
    model.env.run(until_s * _WARM_SHARE)
    model.restart()
    begun_s = model.env.now
    model.env.run(until_s)
    span_s = model.env.now - begun_s
    rate = model.num_games / span_s
    rows = model.num_games * cluster.rows_per_game
    return GamesResult(
        games_per_s=rate,
        linear=rate / most,
        rows_learned_per_s=model.num_learned / span_s,
        samples_per_row=model.num_learned / max(1.0, rows),
        models_per_hour=3600 * model.num_decided / span_s,
        utilisation={
            "self-play": 1.0,
            "network": model.link.utilisation(),
            "store": model.disk.utilisation(),
            "learner": model.learner.utilisation(),
            "gate": model.gate.utilisation(),
        },
    )
