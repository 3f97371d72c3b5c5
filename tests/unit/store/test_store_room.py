"""Checkpoints of a store whose disk has room again."""

import subprocess
import sys

import pytest

from tests.unit.store.test_store_checkpoint import drain, durable

AGAIN = """
import resource, sys, time
from pathlib import Path
from tengen.errors import RunError
from tests.unit.store.test_store_checkpoint import durable, fill

def allow(num_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, resource.RLIM_INFINITY))

store = durable(Path(sys.argv[1]), durability=sys.argv[2])
number = 0
for ends in ("checkpoint", "checkpoint", "close"):
    fill(store, number, number + 300)
    store.checkpoint()
    allow(1 << 12)
    try:
        fill(store, number + 300, number + 400)
        getattr(store, ends)()
        print("it was made")
    except RunError as error:
        assert "will not outlive its host: file (" in str(error), error
    allow(resource.RLIM_INFINITY)
    # Whatever was refused is there, and what the store says is true.
    getattr(store, ends)()
    # The disk is looked at now and then.
    while ends == "checkpoint" and "trouble" in store.table("queue").describe():
        time.sleep(0.02)
    number += 400
print("kept")
"""


def check_kept(script, *words):
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.stdout == "kept\n", done.stdout + done.stderr


@pytest.mark.parametrize("durability", ["checkpoint", "async"])
def test_checkpoints_come_back_with_room(tmp_path, durability):
    check_kept(AGAIN, tmp_path, durability)
    with durable(tmp_path, durability=durability) as store:
        assert drain(store) == list(range(1200))


HOST_AGAIN = """
import resource, sys
from pathlib import Path
import numpy as np
from tengen.errors import UsageError
from tengen.store import Store
from tests.unit.store.test_store_checkpoint import durable

def allow(num_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, resource.RLIM_INFINITY))

def insert(writer, value):
    writer.append({"value": np.int64(value), "frame": np.full(9, value, np.uint8)})
    writer.insert("queue", 1)
    writer.flush()

folder = Path(sys.argv[1])
store = durable(folder, durability="sync", directory=folder / "store")
client = Store.connect(folder / "store")
for value in range(0, 40, 4):
    one, other = (client.writer(f"writer {value + i}", "queue") for i in range(2))
    # So that both have memory.
    insert(one, value)
    insert(other, value + 1)
    allow(1 << 10)
    try:
        insert(one, value + 2)
        print("it was kept")
    except UsageError as error:
        assert "will not outlive its host: file (" in str(error), error
    allow(resource.RLIM_INFINITY)
    insert(other, value + 3)
    other.close()
client.close()
store.close()
print("kept")
"""


def test_the_first_flush_after_there_is_room_again_succeeds(tmp_path):
    check_kept(HOST_AGAIN, tmp_path)
    with durable(tmp_path) as store:
        assert sorted(drain(store)) == list(range(40))
