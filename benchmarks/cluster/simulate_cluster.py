"""Which part limits a cluster of a given size, by a discrete-event simulation.

    python benchmarks/cluster/simulate_cluster.py [--sizes 1,8,300,1000] [--net mlp]
        [--set a=v]
    python benchmarks/cluster/simulate_cluster.py --games [--sizes 1,10,100,1000]
    python benchmarks/cluster/simulate_cluster.py --measure FILE
    python benchmarks/cluster/simulate_cluster.py --validate

Actors of environments ask central inference and write items to the store's shards, and
learners draw them: ``cluster_model.settings.Cluster`` says what there is, and ``--set``
changes a field. With ``--games`` hosts play by themselves and a learner, a store and a
gate follow (``SelfplayCluster``). How long each part takes is read from
``results/service_times.json``, which ``--measure`` writes on this machine from the
project's own benchmarks. ``--validate`` measures real processes of this machine at
several sizes and prints each prediction beside it, and names each check that it did not
run.

A size's row has the throughput, the share of what the environments alone would make
(``linear``), each role's load (throughput over what the role alone would let through),
the limit by name and what to add. Needs simpy (``pip install 'tengen-rl[simulate]'``).
Prints tables, and with ``--json`` the last line as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tengen.errors import TengenError, UsageError

TIMES = Path(__file__).parents[1] / "results" / "service_times.json"
ACTOR_SIZES = "1,2,8,64,300,1000,10000"
GAME_SIZES = "1,10,100,1000"
ACTOR_PARTS = ("actor", "inference", "store")
GAME_PARTS = ("selfplay", "game_learner")


def read_times(path: Path, parts: tuple[str, ...]) -> dict[str, Any]:
    """Returns measured service times.

    Args:
        path: Where they are.
        parts: That are needed.

    Raises:
        UsageError: There are none, or not whole.
    """
    try:
        times = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UsageError(
            f"service times ({path}) cannot be read, {error}; make them by --measure"
        ) from None
    missing = [part for part in parts if part not in times]
    if missing:
        raise UsageError(
            f"service times ({path}) must have {missing[0]}; make them by --measure"
        )
    return dict(times)


def cluster_of(times: dict[str, Any], net: str, num_actors: int) -> Any:
    """Returns a cluster whose roles have cores of their own, by measured times."""
    from cluster_model.settings import Cluster

    nets = times["inference"]["nets"]
    if net not in nets:
        raise UsageError(f"net ({net}) must be {' or '.join(nets)}; correct it")
    store, actor = times["store"], times["actor"]
    return Cluster(
        num_actors=num_actors,
        actor_cpu_s=actor["cpu_s_per_step"],
        batch_s=nets[net]["batch_s"],
        row_s=nets[net]["row_s"],
        request_s=times["inference"]["cpu_s_per_request"],
        insert_item_s=store["insert_item_s"],
        insert_byte_s=store["insert_byte_s"],
        sample_item_s=store["sample_item_s"],
        sample_byte_s=store["sample_byte_s"],
        learn_item_s=actor["learner_cpu_s_per_item"] * nets[net]["learner_factor"],
        # 10 Gb/s and a switch between hosts.
        actors_per_host=16,
        link_latency_s=50e-6,
        link_bytes_per_s=1.25e9,
        server_link_bytes_per_s=1.25e9,
    )


def games_of(times: dict[str, Any], num_hosts: int) -> Any:
    """Returns a cluster of self-play by measured times."""
    from cluster_model.settings import SelfplayCluster

    measured = times["selfplay"]
    return SelfplayCluster(
        num_hosts=num_hosts,
        evaluations_per_core_s=measured["evaluations_per_core_s"],
        learn_row_s=1 / times["game_learner"]["rows_per_core_s"],
        disk_game_s=measured["disk_game_s"],
    )


def predict(args: argparse.Namespace, times: dict[str, Any]) -> list[dict[str, Any]]:
    """Returns a row a size."""
    from cluster_model.actors import simulate
    from cluster_model.games import simulate_games
    from cluster_model.limits import REMEDIES, limit_of, limit_of_games
    from cluster_model.settings import changed

    settings = dict(pair.split("=", 1) for pair in args.set)
    rows = []
    for size in args.sizes:
        if args.games:
            played = simulate_games(changed(games_of(times, size), settings), args.seed)
            limit = limit_of_games(played)
            row: dict[str, Any] = {
                "hosts": size,
                "games_per_s": played.games_per_s,
                "linear": played.linear,
                "rows_learned_per_s": played.rows_learned_per_s,
                "samples_per_row": played.samples_per_row,
                "models_per_hour": played.models_per_hour,
                "load": played.utilisation,
            }
        else:
            cluster = changed(cluster_of(times, args.net, size), settings)
            found = simulate(cluster, args.seed)
            limit = limit_of(found)
            row = {
                "actors": size,
                "steps_per_s": found.steps_per_s,
                "linear": found.linear,
                "answer_p50_ms": 1000 * float(np.percentile(found.answer_s, 50)),
                "answer_p99_ms": 1000 * float(np.percentile(found.answer_s, 99)),
                "batch_rows": found.batch_rows,
                "table_wait": found.table_wait,
                "load": found.load,
            }
        rows.append({**row, "limit": limit, "add": REMEDIES[limit]})
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    """Prints a table of predictions."""
    skipped = ("load", "limit", "add")
    names = [name for name in rows[0] if name not in skipped]
    print("  ".join(f"{name:>13}" for name in names), " limit: what to add")
    for row in rows:
        cells = [f"{row[name]:13,.{0 if row[name] >= 100 else 2}f}" for name in names]
        load = ", ".join(
            f"{role} {share:.2f}"
            for role, share in row["load"].items()
            if 0.05 <= share < 1e3
        )
        print("  ".join(cells), f" {row['limit']}: {row['add']}\n    load: {load}")


def sizes(text: str) -> list[int]:
    """Returns numbers of actors or hosts.

    Raises:
        UsageError: One is no number of 1 to 100,000.
    """
    try:
        found = [int(one) for one in text.split(",")]
    except ValueError:
        raise UsageError(
            f"sizes ({text}) must be whole numbers with commas; correct them"
        ) from None
    for one in found:
        if not 1 <= one <= 100_000:
            raise UsageError(f"sizes ({one}) must be 1 to 100000; correct it")
    return found


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the report."""
    for pair in args.set:
        if "=" not in pair:
            raise UsageError(f"set ({pair}) must be FIELD=VALUE; correct it")
    args.sizes = sizes(args.sizes or (GAME_SIZES if args.games else ACTOR_SIZES))
    if args.measure:
        from simulate_measure import measure

        measure(args.measure)
        return {"measured": str(args.measure)}
    try:
        import simpy  # noqa: F401
    except ImportError:
        raise UsageError(
            "simpy (missing) must be installed; pip install 'tengen-rl[simulate]'"
        ) from None
    times = read_times(args.times, GAME_PARTS if args.games else ACTOR_PARTS)
    if args.validate:
        from simulate_validate import show_check, summary, validate

        checks: list[dict[str, Any]] = []
        for check in validate(times, quick=args.quick):
            checks.append(check)
            if not args.json:
                show_check(check)
        if not args.json:
            print(summary(checks))
        return {"checks": checks}
    rows = predict(args, times)
    if not args.json:
        show(rows)
    return {"rows": rows, "net": args.net, "set": args.set, "seed": args.seed}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sizes", help="actors or, with --games, hosts")
    parser.add_argument("--games", action="store_true", help="self-play")
    parser.add_argument("--net", default="mlp", help="of the service times (mlp)")
    parser.add_argument("--times", type=Path, default=TIMES, help="service times")
    parser.add_argument("--set", action="append", default=[], metavar="FIELD=VALUE")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--measure", type=Path, metavar="FILE")
    parser.add_argument("--validate", action="store_true")
    parser.add_argument("--quick", action="store_true", help="fewer sizes to validate")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    try:
        report = run(args)
    except TengenError as error:
        print(f"simulate_cluster: {error}", file=sys.stderr)
        return error.exit_code
    if args.json:
        print(json.dumps(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
