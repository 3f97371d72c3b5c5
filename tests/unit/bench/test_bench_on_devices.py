"""Self-play's share of a GPU, which is the CPU here."""

import argparse
import os
import time

import pytest
import torch

from tengen.actors import play_generation
from tengen.cli.bench import selfplay
from tests.host_device import HostDevice

RATES = {128: 900.0, 256: 1000.0}


class Slow(HostDevice):
    """Takes longer to prepare than a round lasts."""

    def record(self, function):
        time.sleep(0.05)
        return super().record(function)


@pytest.fixture(autouse=True)
def cpu_as_gpu(give_gpus):
    give_gpus(2, Slow, RATES)
    cores = os.sched_getaffinity(0)
    torch.set_num_threads(1)  # as a TorchRunner leaves its thread, for good
    yield
    os.sched_setaffinity(0, cores)  # a bench pins its process


def test_the_share_is_of_what_the_devices_compute_alone(monkeypatch):
    played = []
    monkeypatch.setattr(
        selfplay,
        "play_generation",
        lambda *args, **options: (
            played.append(play_generation(*args, **options)) or played[-1]
        ),
    )
    parser = argparse.ArgumentParser()
    selfplay.add_arguments(parser)
    words = "--game tictactoe --net 2x8 --cores 1 --rounds 1 --round-s 0.3"
    args = parser.parse_args([*words.split(), "--devices", "cuda:0,cuda:1"])
    report = selfplay.run(args)
    assert report["devices"] == "cuda:0,cuda:1"
    assert report["best_batch"] == report["batch_capacity"] == 256
    assert report["backend_evals_per_s"] == 2 * RATES[256]
    # A round begins when the devices are prepared.
    assert played[0].seconds >= args.round_s
    assert report["evals_per_s"] > 0
    assert report["share_of_backend"] == report["evals_per_s"] / (2 * RATES[256])
    assert 0 < report["batch_rows"] <= 256
