"""Predictions of ``simulate_cluster.py`` beside what processes of this machine did.

Each check runs real processes and predicts the same figure from the service times and
from nothing that the check itself measured, but for one thing: how much of the cores
other programs took meanwhile (``/proc/stat``), as the machine may be shared. What the
service times were measured on (``simulate_measure.CALIBRATED``) is checked by none.

Every check has a row, also one that was not run or that failed, so that a table of them
leaves none out.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from cluster_model.actors import simulate
from cluster_model.settings import Cluster
from simulate_measure import ITEM_STEPS, script

__all__ = ["CHECKS", "Check", "show_check", "summary", "validate"]

_NAMESPACE = "tengen-simulate"

Figures = tuple[float, float]
"""What is predicted, and what is measured."""


@dataclass(frozen=True)
class Check:
    """One figure that is predicted and measured."""

    name: str
    run: Callable[..., Figures]
    """Takes the service times and ``settings``."""
    settings: tuple[float, ...]
    is_quick: bool = False
    """Whether it is of the few that ``--quick`` runs."""
    refusal: Callable[[], str] = lambda: ""
    """Returns why it cannot be run here; empty where it can."""


def validate(times: dict[str, Any], *, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Yields a row for every check: ``name``, ``predicted``, ``measured``, ``error``.

    One that was not run, or whose processes failed, has ``not_run`` instead, which says
    why.
    """
    for check in CHECKS:
        why = check.refusal()
        if quick and not check.is_quick:
            why = "left out by --quick"
        if not why:
            try:
                predicted, measured = check.run(times, *check.settings)
            except SystemExit as error:  # of script
                why = " ".join(str(error).split())
        if why:
            yield {"name": check.name, "not_run": why}
        else:
            yield row_of(check.name, predicted, measured)


def actors_on_a_host(times: dict[str, Any], number: int, step_ms: float) -> Figures:
    """Real actor processes on this host, steps a second; ``many_actors.py``."""
    words = ("--actors", number, "--step-ms", step_ms, "--seconds", "10")
    real = script("many_actors.py", *map(str, words))
    nets = times["inference"]["nets"]["mlp"]
    free = max(0.2, (os.cpu_count() or 1) - real["cores_of_others"])
    cluster = Cluster(
        num_actors=number,
        step_s=step_ms / 1000,
        shared_cores=free,
        actor_cpu_s=times["actor"]["cpu_s_per_step"],
        batch_s=nets["batch_s"],
        row_s=nets["row_s"],
        request_s=times["inference"]["cpu_s_per_request"],
        item_steps=ITEM_STEPS,
        learn_item_s=times["actor"]["learner_cpu_s_per_item"],
        queue_items=max(64, 4 * number),
    )
    found = simulate(cluster, most_steps=30_000)
    return found.steps_per_s, real["before"]["steps_per_s"]


def inference_alone(times: dict[str, Any], number: int) -> Figures:
    """Few simulated actors of a large network: the server's CPU-seconds an answer."""
    words = ("--actors", number, "--step-ms", "4", "--net", "nature", "--rounds", "3")
    real = script("simulated_actors.py", *map(str, words), "--processes", "2")
    nets = times["inference"]["nets"]["nature"]
    cluster = Cluster(
        num_actors=number,
        step_s=0.004,
        batch_s=nets["batch_s"],
        row_s=nets["row_s"],
        request_s=times["inference"]["cpu_s_per_request"],
    )
    found = simulate(cluster, most_steps=10_000)
    predicted = 1000 * found.utilisation["inference"] / found.steps_per_s
    return predicted, real["server"]["cpu_s_per_1000"]


def no_namespace() -> str:
    """Returns why this process has no network namespace; empty where it may have."""
    if os.geteuid() != 0:
        return "needs root, for a network namespace"
    missing = [name for name in ("tc", "ip") if shutil.which(name) is None]
    return f"needs {missing[0]}" if missing else ""


def slow_link(times: dict[str, Any], bits_per_s: float) -> Figures:
    """Simulated actors over a link of a network namespace, steps a second.

    The link is a token bucket (``tc tbf``) on the loopback interface of a namespace,
    which requests and answers share.
    """
    inside = ["ip", "netns", "exec", _NAMESPACE]
    subprocess.run(["ip", "netns", "add", _NAMESPACE], check=True)
    try:
        rate = f"{bits_per_s / 1e6:g}mbit"
        shape = ["tc", "qdisc", "add", "dev", "lo", "root", "tbf", "rate", rate]
        subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True)
        subprocess.run([*inside, *shape, "burst", "64kb", "latency", "2s"], check=True)
        real = script(
            "simulated_actors.py",
            "--tcp",
            "--actors",
            "20",
            "--processes",
            "2",
            "--rounds",
            "3",
            "--step-ms",
            "16",
            before=inside,
        )
    finally:
        subprocess.run(["ip", "netns", "delete", _NAMESPACE], check=True)
    cluster = Cluster(
        num_actors=20,
        request_s=times["inference"]["cpu_s_per_request"],
        link_bytes_per_s=bits_per_s / 8,
        # These actors write nothing to a table: no item of theirs becomes whole.
        item_steps=1_000_000,
    )
    found = simulate(cluster, most_steps=5_000)
    return found.steps_per_s, real["server"]["rate"]


def row_of(name: str, predicted: float, measured: float) -> dict[str, Any]:
    """Returns a check's row; ``error`` is a share of what was measured."""
    error = predicted / measured - 1 if measured else math.inf
    return {
        "name": name,
        "predicted": predicted,
        "measured": measured,
        "error": error,
    }


def show_check(check: dict[str, Any]) -> None:
    """Prints a check: predicted, measured, error, or why it was not run."""
    if "not_run" in check:
        print(f"{check['name']:58} not run: {check['not_run']}", flush=True)
        return
    print(
        f"{check['name']:58} {check['predicted']:10.4g} {check['measured']:10.4g} "
        f"{100 * check['error']:+7.1f} %",
        flush=True,
    )


def summary(checks: list[dict[str, Any]]) -> str:
    """Returns how many checks there are and were run, and the largest error."""
    errors = [abs(one["error"]) for one in checks if "error" in one]
    worst = f", the largest error {100 * max(errors):.1f} %" if errors else ""
    return f"{len(checks)} checks, {len(errors)} run{worst}"


CHECKS = (
    *(
        Check(
            f"{number} actors of {step_ms:g} ms on one host, steps/s",
            actors_on_a_host,
            (number, step_ms),
            is_quick=number in (10, 100),
        )
        # As many as the service times were measured with is no check.
        for number, step_ms in ((10, 16.0), (100, 16.0), (60, 50.0), (300, 16.0))
    ),
    *(
        Check(
            f"inference of nature, {number} actors of 4 ms: CPU ms an answer",
            inference_alone,
            (number,),
            is_quick=number == 20,
        )
        for number in (10, 20, 100)
    ),
    *(
        Check(
            f"20 actors by TCP over a link of {rate / 1e6:g} Mb/s, steps/s",
            slow_link,
            (rate,),
            is_quick=rate == 20e6,
            refusal=no_namespace,
        )
        for rate in (20e6, 80e6)
    ),
)
"""All of them, in order."""
