"""Predictions of ``simulate_cluster.py`` beside what processes of this machine did.

Each check runs real processes and predicts the same figure from the service times and
from nothing that the check itself measured, but for one thing: how much of the cores
other programs took meanwhile (``/proc/stat``), as the machine may be shared.
"""

from __future__ import annotations

import math
import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

from cluster_model.actors import simulate
from cluster_model.settings import Cluster
from simulate_measure import ITEM_STEPS, script

_NAMESPACE = "tengen-simulate"


def validate(times: dict[str, Any], *, quick: bool) -> Iterator[dict[str, Any]]:
    """Yields a check each: ``name``, ``predicted``, ``measured``, ``error``."""
    for number, step_ms in ((10, 16.0), (100, 16.0), (30, 50.0), (300, 16.0)):
        if not quick or number in (10, 100):
            yield actors_on_a_host(times, number, step_ms)
    for number in (20,) if quick else (10, 20, 100):
        yield inference_alone(times, number)
    for rate in (20e6,) if quick else (20e6, 80e6):
        if (check := slow_link(times, rate)) is not None:
            yield check


def actors_on_a_host(
    times: dict[str, Any], number: int, step_ms: float
) -> dict[str, Any]:
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
    name = f"{number} actors of {step_ms:g} ms on one host, steps/s"
    return check_of(name, found.steps_per_s, real["before"]["steps_per_s"])


def inference_alone(times: dict[str, Any], number: int) -> dict[str, Any]:
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
    name = f"inference of nature, {number} actors of 4 ms: CPU ms an answer"
    return check_of(name, predicted, real["server"]["cpu_s_per_1000"])


def slow_link(times: dict[str, Any], bits_per_s: float) -> dict[str, Any] | None:
    """Simulated actors over a link of a network namespace; None where that is not ours.

    The link is a token bucket (``tc tbf``) on the loopback interface of a namespace,
    which requests and answers share.
    """
    if os.geteuid() != 0 or shutil.which("tc") is None or shutil.which("ip") is None:
        return None
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
    name = f"20 actors by TCP over a link of {bits_per_s / 1e6:g} Mb/s, steps/s"
    return check_of(name, found.steps_per_s, real["server"]["rate"])


def check_of(name: str, predicted: float, measured: float) -> dict[str, Any]:
    """Returns a check; ``error`` is of the measurement, more than it where above 0."""
    error = predicted / measured - 1 if measured else math.inf
    return {
        "name": name,
        "predicted": predicted,
        "measured": measured,
        "error": error,
    }


def show_check(check: dict[str, Any]) -> None:
    """Prints a check: predicted, measured, error."""
    print(
        f"{check['name']:58} {check['predicted']:10.4g} {check['measured']:10.4g} "
        f"{100 * check['error']:+7.1f} %",
        flush=True,
    )
