"""What the recipes for boards were tuned by: variants at an equal budget, compared.

    python benchmarks/strength/recipe_sweep.py train --task gomoku/9 --minutes 8 \\
        --out DIR
    python benchmarks/strength/recipe_sweep.py judge --task gomoku/9 --out DIR

``train`` makes one run of one core a variant, ``--jobs`` of them side by side, so that
all share what the machine gives. ``judge`` prints a line a variant: in Connect Four the
share of moves that the solver calls optimal, of the bare policy and of 64 simulations;
on other boards the score of the final network against that of ``base``, of every seed,
or whatever ``--against`` names.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent
_NET_4X64 = '{"kind": "resnet", "num_blocks": 4, "num_channels": 64}'


def grown_at(share: float) -> str:
    """Returns the setting that a 4x64 network takes over at a share of the minutes."""
    return f'agent.stages=[{{"share": {share}, "net": {_NET_4X64}}}]'


# What all variants share, said in full so that it stays when recipes change. Nothing
# but learning and games; the precision is that of the trial.
COMMON = (
    "agent.rating.time_share=0",
    "agent.rating.final_games=0",
    "store.limiter.samples_per_row=4",
    "agent.stages=[]",
    "agent.actor.search.score_weight=0",
)
VARIANTS: dict[str, tuple[str, ...]] = {
    "base": (),
    "grow-at-0.35": (grown_at(0.35),),
    "grow-at-0.85": (grown_at(0.85),),
    "rows-2": ("store.limiter.samples_per_row=2",),
    "rows-8": ("store.limiter.samples_per_row=8",),
    "rows-16": ("store.limiter.samples_per_row=16",),
    "rows-8-rate-x2": (
        "store.limiter.samples_per_row=8",
        "learner.optimizer.learning_rate=0.4",
    ),
    "rows-8-simulations-64": (
        "store.limiter.samples_per_row=8",
        "agent.actor.full_simulations=64",
    ),
    "simulations-16": ("agent.actor.full_simulations=16",),
    "simulations-64": ("agent.actor.full_simulations=64",),
    "rate-x2": ("learner.optimizer.learning_rate=0.4",),
}
# KataGo's methods, each beside "aux"; for Go.
_AUX = ("store.limiter.samples_per_row=8", "net.auxiliary=true")
VARIANTS |= {
    "aux": _AUX,
    "aux-4x64": (*_AUX, "net.num_blocks=4", "net.num_channels=64"),
    "aux-simulations-64": (*_AUX, "agent.actor.full_simulations=64"),
    "aux-rows-4": ("store.limiter.samples_per_row=4", "net.auxiliary=true"),
    "aux-surprise": (
        *_AUX,
        "agent.actor.policy_surprise_share=0.5",
        "agent.actor.value_surprise_share=0.1",
    ),
    "aux-cap": (
        *_AUX,
        "agent.actor.full_simulations=64",
        "agent.actor.cheap_simulations=16",
        "agent.actor.full_probability=0.33",
    ),
    "aux-puct-64": (
        *_AUX,
        "agent.actor.search.policy=puct",
        "agent.actor.full_simulations=64",
    ),
    "aux-puct-cap": (
        *_AUX,
        "agent.actor.search.policy=puct",
        "agent.actor.full_simulations=100",
        "agent.actor.cheap_simulations=20",
        "agent.actor.full_probability=0.25",
    ),
    "aux-policy-opening": (
        *_AUX,
        "agent.actor.max_opening_plies=0",
        "agent.actor.policy_opening_plies=2",
    ),
    "aux-reduce": (*_AUX, "agent.actor.reduce_above=0.9"),
}
# The same beside "score", what the recipe of Go has.
_SCORE = ("net.auxiliary=true", "agent.actor.search.score_weight=0.4")
VARIANTS |= {
    "score": _SCORE,
    "score-rows-8": (*_SCORE, "store.limiter.samples_per_row=8"),
    "score-passes": (*_SCORE, "store.with_replacement=false"),
    "score-reduce": (*_SCORE, "agent.actor.reduce_above=0.9"),
    "score-policy-surprise": (*_SCORE, "agent.actor.policy_surprise_share=0.5"),
    "score-value-surprise": (*_SCORE, "agent.actor.value_surprise_share=0.1"),
    "score-policy-opening": (
        *_SCORE,
        "agent.actor.max_opening_plies=0",
        "agent.actor.policy_opening_plies=2",
    ),
    "score-forks": (
        *_SCORE,
        "agent.actor.early_fork_share=0.04",
        "agent.actor.late_fork_share=0.01",
    ),
    "score-lead": (*_SCORE, "net.lead=true", "agent.actor.lead_share=0.05"),
    "score-komi": (
        *_SCORE,
        "agent.actor.variety.komi_stdev=1",
        "agent.actor.variety.komi_wide_share=0.06",
    ),
    "score-cap": (
        *_SCORE,
        "agent.actor.full_simulations=64",
        "agent.actor.cheap_simulations=16",
        "agent.actor.full_probability=0.33",
    ),
    "score-puct-cap": (
        *_SCORE,
        "agent.actor.search.policy=puct",
        "agent.actor.full_simulations=100",
        "agent.actor.cheap_simulations=20",
        "agent.actor.full_probability=0.25",
    ),
    "score-puct-forced": (
        *_SCORE,
        "agent.actor.search.policy=puct",
        "agent.actor.search.forced_playouts=2",
        "agent.actor.full_simulations=100",
        "agent.actor.cheap_simulations=20",
        "agent.actor.full_probability=0.25",
    ),
    "score-sizes": (
        *_SCORE,
        "net.mixed_sizes=true",
        'agent.actor.variety.boards=["7", "6", "5"]',
        "agent.actor.variety.board_weights=[2, 1, 1]",
    ),
}


def train(args: argparse.Namespace) -> None:
    names = args.variants or list(VARIANTS)
    args.out.mkdir(parents=True, exist_ok=True)

    def run(name: str) -> None:
        out = args.out / f"{name}-s{args.seed}"
        words = [sys.executable, "-m", "tengen", "train", args.task, "--json"]
        words += ["--out", str(out), "--minutes", str(args.minutes)]
        words += ["--seed", str(args.seed), "--threads", "1"]
        for setting in (*COMMON, *args.set, *VARIANTS[name]):
            words += ["--set", setting]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            lines = child.stdout.read().splitlines()
            usage = os.wait4(child.pid, 0)[2]
        report = json.loads(lines[-1])
        report["cpu_s"] = round(usage.ru_utime + usage.ru_stime, 1)
        (args.out / f"{out.name}.json").write_text(json.dumps(report))
        print(f"{name} used {report['cpu_s']} CPU-s", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(run, names))


def judge(args: argparse.Namespace) -> None:
    logs = sorted(args.out.glob("*.json"))
    runs = [log.with_suffix("") for log in logs]
    optimal = {}
    if args.task == "connect4":
        optimal = _accuracies(runs, args.positions)
    for log, run in zip(logs, runs, strict=True):
        report = json.loads(log.read_text())
        row: dict[str, Any] = {"run": run.name}
        row |= {name: report.get(name) for name in ("cpu_s", "generation", "num_games")}
        row |= optimal.get(str(run), {})
        if not optimal:
            seeds = [str(r) for r in runs if r.name.rpartition("-s")[0] == args.against]
            others = seeds if args.against in VARIANTS else [args.against]
            row["scores"] = {
                Path(other).name: _score(run, other, args.games)
                for other in others
                if other != str(run)
            }
        print(json.dumps(row), flush=True)


def _accuracies(runs: list[Path], positions: int) -> dict[str, dict[str, float]]:
    """Returns each run's share of optimal moves by simulations."""
    words = [sys.executable, str(_ROOT / "connect4_accuracy.py"), *map(str, runs)]
    # Not the positions of reports, which are those of the usual seed.
    words += ["--simulations", "1", "64", "--positions", str(positions), "--json"]
    words += ["--seed", "0"]
    found: dict[str, dict[str, float]] = {}
    for line in subprocess.check_output(words).splitlines():
        row = json.loads(line)
        shares = found.setdefault(row["player"], {})
        shares[f"optimal_{row['simulations']}"] = row["optimal_share"]
    return found


def _score(run: Path, other: str, games: int) -> float:
    words = [sys.executable, "-m", "tengen", "match", str(run), other, "--json"]
    words += ["--games", str(games)]
    lines = subprocess.check_output(words).splitlines()
    score: float = json.loads(lines[-1])["score_a"]
    return score


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.add_argument("variants", nargs="*", choices=(*VARIANTS, []))
    training.add_argument("--minutes", type=float, default=8.0)
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--jobs", type=int, default=os.cpu_count())
    training.add_argument("--set", action="append", default=[])
    training.set_defaults(run=train)
    judging = commands.add_parser("judge")
    judging.add_argument("--positions", type=int, default=2000)
    judging.add_argument("--games", type=int, default=400)
    judging.add_argument("--against", default="base", help="a variant, or mcts:300")
    judging.set_defaults(run=judge)
    for command in (training, judging):
        command.add_argument("--task", required=True)
        command.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
