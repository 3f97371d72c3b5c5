"""The medians of the measurements, as Markdown tables."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any


def print_tables(path: Path) -> None:
    """Prints the results in a file: items per CPU-second, and learner steps."""
    rates: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(dict)
    learners: dict[tuple[str, float], list[dict[str, Any]]] = defaultdict(list)
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if "error" in row:
            print(f"{row['store']}, {row.get('workload', 'learner')}: {row['error']}")
        elif row["figure"] == "learn":
            learners[row["store"], row["accelerator_ms"]].append(row)
        else:
            rate = row["items"] / row["cpu_seconds"]
            figure = (row["workload"], row["figure"])
            rates[figure].setdefault(row["store"], []).append(rate)
    if rates:
        print_rates(rates)
    if learners:
        print_learners(learners)


def print_rates(rates: dict[tuple[str, str], dict[str, list[float]]]) -> None:
    """Prints a line per store: each result's median, minimum and maximum."""
    stores = list(dict.fromkeys(store for one in rates.values() for store in one))
    for kind in ("sample", "insert"):
        figures = [figure for figure in rates if figure[1].startswith(kind)]
        names = [f"{workload} {figure}" for workload, figure in figures]
        print(f"| store | {' | '.join(names)} |")
        print("|---" * (len(names) + 1) + "|")
        if kind == "sample":
            # numpy's copy rate, over all child processes.
            every = [rates[workload, "copy"].values() for workload, _ in figures]
            copies = [
                spread([rate for one in child for rate in one]) for child in every
            ]
            print(f"| numpy.take | {' | '.join(copies)} |")
        for store in stores:
            cells = [spread(rates[figure].get(store, [])) for figure in figures]
            print(f"| {store} | {' | '.join(cells)} |")
        print()


def print_learners(learners: dict[tuple[str, float], list[dict[str, Any]]]) -> None:
    """Prints a line per store: steps per second, and the share of time waiting."""
    print("| fed from | learner | steps/s | waits | sends priorities | CPU-s a step |")
    print("|---" * 6 + "|")
    for (store, accelerator_ms), rows in learners.items():
        cells = [
            f"{accelerator_ms:g} ms" if accelerator_ms else "CPU",
            f"{median(rows, lambda row: row['steps'] / row['seconds']):.2f}",
        ]
        for name in ("draw_s", "update_s"):
            share = median(rows, lambda row, name=name: row[name] / row["seconds"])
            cells.append(f"{100 * share:.2f} %")
        cells.append(
            f"{median(rows, lambda row: row['cpu_seconds'] / row['steps']):.4f}"
        )
        print(f"| {store} | {' | '.join(cells)} |")


def median(rows: list[dict[str, Any]], value: Any) -> float:
    return float(statistics.median(value(row) for row in rows))


def spread(values: list[float]) -> str:
    if not values:
        return "-"
    middle = short(statistics.median(values))
    return f"{middle} ({short(min(values))}-{short(max(values))})"


def short(value: float) -> str:
    for unit, scale in (("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value:.3g}"
