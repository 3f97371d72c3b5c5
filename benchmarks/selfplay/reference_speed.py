"""How much faster self-play is than one search at a time in Python with torch.

    python benchmarks/selfplay/reference_speed.py --json

Both make searches of the same number of simulations with the same network on the same
cores, by wall time. The reference is ``tengen.search.reference`` with one position a
torch call, and stands three times: one process with torch on one thread and on every
core, of which the faster counts, and one process a core, each with torch on one thread.
The other side is ``tengen bench selfplay``.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time

from tengen import games
from tengen.bench import selfplay
from tengen.run import available_cores

_ROUND_S = 10.0


def reference(game_name: str, net: str, simulations: int, num_threads: int) -> float:
    """Returns simulations a second of one reference search after another."""
    import torch

    from tengen.nets import InferenceHead, board_of, parse_net
    from tengen.search import SearchConfig
    from tengen.search.reference import ReferenceSearch

    torch.set_num_threads(num_threads)
    torch.manual_seed(0)
    game = games.make(game_name)
    features = board_of(game)
    head = InferenceHead(parse_net(net).build(features.signature)).eval()

    @torch.inference_mode()
    def evaluate(state: games.State) -> tuple[list[float], float]:
        policy, value = head(torch.from_numpy(state.observation())[None])
        return policy[0].tolist(), float(value[0])

    state = game.new_state()
    done = 0
    start_s = time.perf_counter()
    while time.perf_counter() - start_s < _ROUND_S:
        search = ReferenceSearch(SearchConfig(), evaluate)
        result = search.search(state, simulations)
        done += result.num_simulations
        state.apply(result.best_action)
        if state.is_terminal():
            state = game.new_state()
    return done / (time.perf_counter() - start_s)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    selfplay.add_arguments(parser)
    parser.set_defaults(game="gomoku/15", net="4x64", slots=32)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    cores = args.cores or available_cores()
    job = (args.game, args.net, args.simulations)
    with multiprocessing.get_context("spawn").Pool(cores) as pool:
        alone = max(pool.apply(reference, (*job, n)) for n in sorted({1, cores}))
        together = sum(pool.starmap(reference, [(*job, 1)] * cores))
    fast = selfplay.run(args)
    rate = fast["simulations_per_s"]
    report = {
        "name": "reference_speed",
        "game": args.game,
        "net": args.net,
        "cores": cores,
        "simulations": args.simulations,
        "reference_simulations_per_s": alone,
        "reference_a_core_simulations_per_s": together,
        "selfplay_simulations_per_s": rate,
        "selfplay_evals_per_s": fast["evals_per_s"],
        "ratio": rate / alone,
        "ratio_to_a_process_a_core": rate / together,
    }
    print(json.dumps(report) if args.json else report)


if __name__ == "__main__":
    main()
