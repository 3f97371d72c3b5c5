"""What estimating leads costs self-play: simulations a row, and evaluations.

    python benchmarks/selfplay/lead_cost.py RUN --games 48

Plays the same games with the newest model of a run without leads and with them, and
compares counts, which depend on no machine. Prints a line of JSON for each way to
search.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from tengen import _core, games
from tengen.actors import GenerationReport, SelfplayConfig, play_generation
from tengen.inference import Backend, InferenceConfig, open_backend, search_outputs
from tengen.models import resolve_model
from tengen.search import SearchConfig

SEARCHES: dict[str, dict[str, Any]] = {
    "gumbel": {"search": SearchConfig(policy="gumbel"), "full_simulations": 32},
    "puct": {
        "full_simulations": 64,
        "cheap_simulations": 16,
        "full_probability": 0.25,
    },
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a run with a model of Go")
    parser.add_argument("--games", type=int, default=48)
    parser.add_argument("--share", type=float, default=0.05)
    args = parser.parse_args()
    model = resolve_model(args.model)
    game = games.make(model.meta.task)
    settings = InferenceConfig(
        devices="cpu", backend="torch", precision="fp32", batch_shape="fixed"
    )
    outputs = search_outputs(scores=False)
    backend = open_backend(model.path, settings, 1, outputs=outputs)
    for name, search in SEARCHES.items():
        base = {"num_slots": 64, "max_opening_plies": 3, **search}
        without, _ = play(game, SelfplayConfig(**base), backend, args.games)
        config = SelfplayConfig(**base, lead_share=args.share)
        played, num_leads = play(game, config, backend, args.games)
        more = played.num_simulations - without.num_simulations
        evaluations = played.num_evaluations / without.num_evaluations - 1
        report = {
            "search": name,
            "num_rows": played.num_rows,
            "num_leads": num_leads,
            "searches_a_lead": more / config.lead_simulations / max(1, num_leads),
            "simulations_a_row": without.num_simulations / without.num_rows,
            "more_simulations_a_row": more / without.num_rows,
            "more_evaluations": evaluations,
        }
        print(json.dumps(report), flush=True)


def play(
    game: games.Game, config: SelfplayConfig, backend: Backend, num_games: int
) -> tuple[GenerationReport, int]:
    """Returns the counts of a generation, and how many plies have a lead."""
    queue = _core.GameQueue(seed=3, generation=1, model=0, num_games=num_games)
    frames = _core.GameFrames()
    report = play_generation(game, config, backend, queue, frames, num_threads=1)
    records = [_core.decode_game(frame) for frame in frames.take()]
    leads = [ply.lead for record in records for ply in record.plies]
    return report, sum(lead != _core.NO_LEAD for lead in leads)


if __name__ == "__main__":
    main()
