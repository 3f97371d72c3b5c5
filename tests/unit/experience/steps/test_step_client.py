"""Actors of other processes write into a table, no further ahead than it lets them."""

import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from step_blocks import COLUMNS, block, numbers_of

from tengen.errors import RunError
from tengen.experience import ItemLayout, ReplayConfig, StepClient, StepTable
from tengen.transport import NetDoor
from tests.refusals import refused

LAYOUT = ItemLayout(num_steps=3, period=1)
NUM_SLOTS, BLOCK = 2, 16
CONFIG = ReplayConfig(
    sampler="uniform", max_items=10_000, min_items=32, max_ahead=64, timeout_s=0.5
)


@pytest.fixture
def memory():
    with tempfile.TemporaryDirectory(prefix="tengen-") as folder:
        yield Path(folder) / "table"


def opened(tmp_path, memory, net):
    return StepTable(
        tmp_path / "steps",
        COLUMNS,
        LAYOUT,
        CONFIG,
        seed=1,
        num_slots=NUM_SLOTS,
        batch_size=8,
        directory=memory,
        net=net,
    )


@pytest.mark.parametrize("over", ["folder", "tcp"])
def test_an_actor_waits_for_the_learner(tmp_path, memory, over):
    """Before it waited, hundreds of blocks were on their way to a full table."""
    net = NetDoor(listen="127.0.0.1:0") if over == "tcp" else None
    table = opened(tmp_path, memory, net)
    address = table.address or str(memory)
    client = StepClient(address, LAYOUT, CONFIG)
    writer = client.writer("actor-0", NUM_SLOTS)

    written = []

    def write_on():
        for number in range(1000):
            numbers = numbers_of(NUM_SLOTS, number * BLOCK, BLOCK)
            versions = np.zeros(numbers.shape, np.int64)
            writer.append({**block(numbers), "model_version": versions}, {})
            written.append(number)

    with refused(RunError, "experience (steps)"):
        write_on()
    allowed = CONFIG.min_items + CONFIG.max_ahead
    num_rows = len(written) * NUM_SLOTS * BLOCK
    assert num_rows <= allowed + NUM_SLOTS * BLOCK
    assert CONFIG.max_ahead / 2 < table.describe()["num_items"] <= allowed + 1
    assert client.num_rows == num_rows
    client.close()
    table.close()


def test_a_name_that_a_lost_session_has_is_waited_for(tmp_path, memory):
    """By TCP, where a host that was cut off is not known to be gone for some time."""
    table = opened(tmp_path, memory, NetDoor(listen="127.0.0.1:0"))
    address = table.address
    assert address is not None
    lost, again = (StepClient(address, LAYOUT, CONFIG) for _ in range(2))
    held = [lost.writer("actor-0", NUM_SLOTS)]
    again.taken_s = 0.2
    with refused(Exception, "actor-0"):
        again.writer("actor-0", NUM_SLOTS)
    again.taken_s = 600.0
    # The store itself waits for five seconds; this is while it is asked again.
    timer = threading.Timer(5.2, held.clear)  # its sessions end with it
    timer.start()
    again.writer("actor-0", NUM_SLOTS)
    timer.join()
    lost.close()
    again.close()
    table.close()
