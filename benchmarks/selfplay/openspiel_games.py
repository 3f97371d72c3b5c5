"""Every game of OpenSpiel that fits: played to its end, and searched, beside OpenSpiel.

    python benchmarks/selfplay/openspiel_games.py --json

Each game that ``tengen recipes --openspiel`` says fits is played to the end between
``mcts:N`` and random moves, and searched from its start by two ways on each side, in
turns in one process:

* playouts: UCT with c 1.4 and one uniform random playout a simulation, by the player
  ``mcts:N`` and by ``open_spiel.python.algorithms.mcts`` with its random evaluator;
* trees: PUCT whose every leaf is shown as a network sees it and answered by zeros: by a
  worker of self-play, whose trees share batches, and by the same module of OpenSpiel
  with an evaluator that reads what that of its AlphaZero reads.

Numbers are simulations per CPU-second, medians of the rounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

import numpy as np

from tengen import _core, games
from tengen.actors import SelfplayConfig
from tengen.evaluation import MctsPlayer, RandomPlayer, play_match
from tengen.games.openspiel import list_openspiel
from tengen.run import machine_line

# Seconds of CPU that a search may take; fewer simulations than these say nothing of
# games whose playouts differ much in length.
BUDGET_S = 0.4
MIN_SIMULATIONS = 50
NUM_TREES = 64


@dataclass
class Row:
    """What came of one game."""

    game: str
    actions: int
    planes: tuple[int, int, int]
    layout: str
    plies: int
    """Of one game, played to its end."""
    result: float
    """Of the searching player: 1, 0.5 or 0."""
    playouts: float
    their_playouts: float
    trees: float
    their_trees: float


def cpu_of(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


class Seen:
    """Answers zeros to what OpenSpiel's AlphaZero would show its network."""

    def evaluate(self, state: Any) -> Any:
        np.expand_dims(state.observation_tensor(), 0)
        np.expand_dims(state.legal_actions_mask(), 0)
        return np.zeros(2)

    def prior(self, state: Any) -> list[tuple[int, float]]:
        if state.is_chance_node():
            return list(state.chance_outcomes())
        legal = state.legal_actions()
        return [(action, 1.0 / len(legal)) for action in legal]


class Theirs:
    """OpenSpiel's searches of one game."""

    def __init__(self, name: str) -> None:
        import pyspiel
        from open_spiel.python.algorithms import mcts

        self._mcts = mcts
        self._game = pyspiel.load_game(name)

    def playouts(self, num_simulations: int, seed: int) -> None:
        rollouts = self._mcts.RandomRolloutEvaluator(1, np.random.RandomState(seed))
        self._search(num_simulations, rollouts, self._mcts.SearchNode.uct_value)

    def trees(self, num_simulations: int) -> None:
        self._search(num_simulations, Seen(), self._mcts.SearchNode.puct_value)

    def _search(self, num_simulations: int, evaluator: Any, select: Any) -> None:
        bot = self._mcts.MCTSBot(
            self._game,
            1.4,
            num_simulations,
            evaluator,
            solve=False,
            random_state=np.random.RandomState(0),
            child_selection_fn=select,
        )
        bot.mcts_search(self._game.new_initial_state())


def rate_of(search: Callable[[int], None], most: int) -> tuple[int, float]:
    """Returns how many simulations fit the budget, and their number a CPU-second."""
    num = MIN_SIMULATIONS
    while True:
        seconds = cpu_of(partial(search, num))
        if num >= most or seconds > BUDGET_S / 8:
            return num, num / seconds
        num = min(4 * num, most)


def own_playouts(source: Any, seed: int, num_simulations: int) -> None:
    """Searches the first position with random playouts."""
    check(_core.mcts_choose(source, [], num_simulations, seed))


def own_trees(source: Any, num_simulations: int) -> float:
    """Returns simulations a CPU-second of trees that begin games of self-play."""
    settings = SelfplayConfig(
        full_simulations=num_simulations,
        cheap_simulations=num_simulations,
        num_slots=NUM_TREES,
        max_opening_plies=0,
    )
    queue = _core.GameQueue(seed=1, generation=1, model=0, num_games=NUM_TREES)
    worker = _core.make_selfplay_worker(
        source, settings.to_native(), queue, _core.GameFrames()
    )
    start = time.process_time()
    while worker.next():
        worker.done()
        if time.process_time() - start > BUDGET_S:
            break
    return float(worker.stats.num_simulations / (time.process_time() - start))


def measure(name: str, most: int, num_rounds: int) -> Row:
    game = games.make(f"openspiel/{name}")
    source, theirs = games.core_game(game), Theirs(name)
    report = play_match(game, MctsPlayer(8), RandomPlayer(), num_games=1)
    (played,) = report.games
    assert played.score_a is not None
    rates: dict[str, list[float]] = {
        key: [] for key in ("playouts", "their_playouts", "trees", "their_trees")
    }
    for seed in range(num_rounds):
        num, rate = rate_of(partial(own_playouts, source, seed), most)
        rates["playouts"].append(rate)
        seconds = cpu_of(partial(theirs.playouts, num, seed))
        rates["their_playouts"].append(num / seconds)
        rates["trees"].append(own_trees(source, most))
        _, rate = rate_of(theirs.trees, most)
        rates["their_trees"].append(rate)
    return Row(
        name,
        game.num_actions,
        (game.num_planes, game.height, game.width),
        game.policy_layout,
        len(played.moves),
        played.score_a,
        **{key: statistics.median(values) for key, values in rates.items()},
    )


def check(action: int) -> None:
    assert action >= 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--games", help="names, separated by blanks; every one that fits"
    )
    parser.add_argument("--simulations", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    listed = list_openspiel()
    fitting = [name for name, verdict in listed if verdict == "fits"]
    names = args.games.split() if args.games else fitting
    print(f"{machine_line()}; OpenSpiel {version('open_spiel')}; {len(listed)} games, ")
    print(
        f"{len(fitting)} fit; {args.rounds} rounds of {args.simulations} simulations\n"
    )
    print(
        "| game | actions | planes | layout | plies | playouts/s | OpenSpiel's |",
        end="",
    )
    print(" ratio | trees/s | OpenSpiel's | ratio |")
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    rows = []
    for name in names:
        row = measure(name, args.simulations, args.rounds)
        rows.append(row)
        shape = " x ".join(map(str, row.planes))
        print(
            f"| `{name}` | {row.actions:,} | {shape} | {row.layout} | {row.plies} "
            f"| {row.playouts:,.0f} | {row.their_playouts:,.0f} "
            f"| {row.playouts / row.their_playouts:.1f} "
            f"| {row.trees:,.0f} | {row.their_trees:,.0f} "
            f"| {row.trees / row.their_trees:.1f} |",
            flush=True,
        )
    if args.json:
        print(json.dumps([asdict(row) for row in rows]))


if __name__ == "__main__":
    main()
