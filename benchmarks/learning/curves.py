"""Curves of several seeds: a plot, and a table with the interquartile mean over seeds.

    python benchmarks/learning/curves.py --group ppo runs/a runs/b c.csv \
        --group dqn runs/d --at 50k,100k --png curves.png

A seed is a run directory or a file of ``tengen curves``. The table is Markdown on
stdout; only the plot needs matplotlib.

Source: Agarwal et al. 2021, "Deep Reinforcement Learning at the Edge of the Statistical
Precipice" (arXiv:2108.13264), section 4.3, for the interquartile mean. Differs from the
paper: minimum and maximum over seeds instead of bootstrap confidence intervals.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tengen.errors import UsageError, refusal
from tengen.observe.curves.table import COLUMNS, read_curve
from tengen.run import RunDirectory

Curve = tuple[NDArray[np.float64], NDArray[np.float64]]

# Tolerance, because a run may end just before the requested step.
_SHORT = 0.02
_NUM_POINTS = 200


def interquartile_mean(values: ArrayLike) -> NDArray[np.float64]:
    """Returns the mean over the first axis without its lowest and highest quarter.

    Of n values, floor(n / 4) are left out at either end, so none if n is at most 3.

    Args:
        values: ``[num_seeds, ...]``; NaN marks a missing seed, which does not count.

    Returns:
        ``[...]``, NaN if no seed has a value.
    """
    ordered = np.sort(np.asarray(values, np.float64), axis=0)  # sort puts NaN last
    num_known = (~np.isnan(ordered)).sum(axis=0)
    num_cut = num_known // 4
    rank = np.arange(len(ordered)).reshape(-1, *[1] * (ordered.ndim - 1))
    is_kept = (rank >= num_cut) & (rank < num_known - num_cut)
    total = np.where(is_kept, ordered, 0.0).sum(axis=0)
    count = is_kept.sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def values_at(curve: Curve, at: ArrayLike) -> NDArray[np.float64]:
    """Returns a curve's latest values; NaN before the curve begins and after it ends.

    Args:
        curve: x and y ``[N]``, x in ascending order.
        at: ``[M]``, values of x.
    """
    x, y = curve
    wanted = np.asarray(at, np.float64)
    if len(x) == 0:
        return np.full(wanted.shape, np.nan)
    found = np.searchsorted(x, wanted, side="right") - 1
    is_there = (found >= 0) & (wanted <= x[-1] * (1 + _SHORT))
    return np.where(is_there, y[np.maximum(found, 0)], np.nan)


def read_seed(path: Path, x: str, y: str) -> Curve:
    """Returns one seed's curve; rows without a value for ``x`` or ``y`` are left out.

    Raises:
        UsageError: ``path`` is neither a run nor a file of ``tengen curves``.
    """
    if path.is_dir():
        rows = [(row[x], row[y]) for row in read_curve(RunDirectory.open(path))]
        found = [pair for pair in rows if None not in pair]
    elif path.is_file():
        try:
            with open(path, newline="", encoding="ascii") as file:
                told = [(row[x], row[y]) for row in csv.DictReader(file)]
            found = [(float(a), float(b)) for a, b in told if a and b]
        except (ValueError, LookupError, csv.Error):
            raise UsageError(
                f"file ({path}) is no table with columns {x} and {y}; write it by "
                f"tengen curves"
            ) from None
    else:
        raise UsageError(f"seed ({path}) is not there; name a run or a CSV file")
    if not found:
        raise UsageError(f"curve ({path}) has no {y} by {x}; choose --x and --y")
    table = np.array(found, np.float64)
    return table[:, 0], table[:, 1]


def table(groups: Mapping[str, Sequence[Curve]], at: Sequence[float], x: str) -> str:
    """Returns Markdown: a row per group, a column for each of ``at``."""
    lines = [
        f"| {x} | {' | '.join(f'{each:,.0f}' for each in at)} |",
        "|---" * (len(at) + 1) + "|",
    ]
    for name, curves in groups.items():
        seeds = np.stack([values_at(curve, at) for curve in curves])
        cells = [_cell(seeds[:, i]) for i in range(len(at))]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def plot(groups: Mapping[str, Sequence[Curve]], x: str, y: str, path: Path) -> None:
    """Draws each seed as a thin line, and each group's interquartile mean."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise UsageError(
            f"png ({path}) needs the package matplotlib; pip install 'tengen-rl[plots]'"
        ) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 5))
    for i, (name, curves) in enumerate(groups.items()):
        colour = f"C{i % 10}"
        for curve in curves:
            axes.plot(*curve, color=colour, alpha=0.25, linewidth=0.8)
        at = np.linspace(0, max(curve[0][-1] for curve in curves), _NUM_POINTS)
        seeds = np.stack([values_at(curve, at) for curve in curves])
        label = f"{name} ({len(curves)})"
        axes.plot(at, interquartile_mean(seeds), color=colour, label=label)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.legend()
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)


def _cell(values: NDArray[np.float64]) -> str:
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return "-"
    mean = float(interquartile_mean(values))
    return f"{mean:.4g} ({known.min():.4g} to {known.max():.4g}, n = {len(known)})"


def _steps(text: str) -> list[float]:
    scales = {"k": 1e3, "M": 1e6, "G": 1e9}
    try:
        found = [
            float(word.rstrip("kMG")) * scales.get(word[-1:], 1.0)
            for word in text.split(",")
        ]
    except ValueError:
        found = [math.nan]
    if not all(0 <= each < math.inf for each in found):
        raise UsageError(f"at ({text}) must be numbers, as 50k,100k,1M; correct it")
    return found


def _groups(words: Sequence[Sequence[str]]) -> dict[str, list[Path]]:
    groups: dict[str, list[Path]] = {}
    for name, *paths in words:
        if not paths:
            raise UsageError(f"group ({name}) must have seeds; name runs or CSV files")
        groups.setdefault(name, []).extend(map(Path, paths))
    return groups


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--group", nargs="+", action="append", required=True, metavar="NAME SEED"
    )
    parser.add_argument("--x", choices=COLUMNS, default="agent_steps")
    parser.add_argument("--y", choices=COLUMNS, default="return_mean")
    parser.add_argument("--at", help="where the table looks, as 50k,100k (the end)")
    parser.add_argument("--png", type=Path, help="draws the curves there")
    args = parser.parse_args(argv)
    try:
        groups = {
            name: [read_seed(path, args.x, args.y) for path in paths]
            for name, paths in _groups(args.group).items()
        }
        # The last x that all seeds reach.
        end = min(curve[0][-1] for curves in groups.values() for curve in curves)
        at = [float(end)] if args.at is None else _steps(args.at)
        print(table(groups, at, args.x))
        if args.png is not None:
            plot(groups, args.x, args.y, args.png)
    except (UsageError, OSError) as error:
        refused = refusal(error)
        assert refused is not None
        print(f"curves: {refused}", file=sys.stderr)
        return refused.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
