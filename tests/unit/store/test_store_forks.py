"""A process that has a store, or a client of one, forks."""

import os
import signal
import subprocess
import sys
import tempfile

import numpy as np
import pytest

from tengen.errors import UsageError
from tengen.store import Column, Store, StoreConfig, TableConfig
from tests.refusals import refused

TABLE = TableConfig(
    name="t", columns={"value": Column(dtype="int64")}, steps_per_chunk=4
)

# A store, whose process forks while it is in use. The child leaves in the way of a
# program that ends: the store's block, and then everything that Python frees.
PARENT = """
import os, signal, sys
import numpy as np
from tengen.errors import UsageError
from tengen.store import Column, Store, StoreConfig, TableConfig

kind, folder = sys.argv[1:]
table = TableConfig(
    name="t", columns={"value": Column(dtype="int64")}, steps_per_chunk=4
)
options = {
    "here": {},
    "disk": {"disk_bytes": 1 << 20, "disk_directory": folder + "/disk"},
    "served": {
        "directory": folder + "/store",
        "listen": "127.0.0.1:0",
        "disk_bytes": 1 << 20,
        "disk_directory": folder + "/disk",
        "durability": "async",
    },
}[kind]
with Store(StoreConfig.of([table], memory_bytes=1 << 20, **options)) as store:
    served = kind == "served"
    near = Store.connect(folder + "/store") if served else store
    far = Store.connect(store.address) if served else store
    near.table("t").insert("a", 0, {"value": np.arange(8)})
    near.flush()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        try:
            store.describe()
        except UsageError as error:
            assert "must be used in the process that made it" in str(error)
        else:
            os._exit(3)
        near.close()
        far.close()
        sys.exit(4)
    assert os.waitpid(child, 0)[1] == 4 << 8
    assert len(os.listdir(folder)) == {"here": 0, "disk": 1, "served": 2}[kind]
    assert len(far.table("t").sample(4, timeout_s=300.0).keys) == 4
    near.table("t").insert("a", 8, {"value": np.arange(8)})
    near.flush()
    assert store.table("t").describe()["num_items"] == 16
    if served:
        store.checkpoint(60.0)
"""


@pytest.mark.parametrize("kind", ["here", "disk", "served"])
def test_a_forked_process_that_ends_leaves_its_parents_store_alone(kind):
    # A socket's path is short.
    with tempfile.TemporaryDirectory(prefix="tengen-") as folder:
        words = [sys.executable, "-c", PARENT, kind, folder]
        ended = subprocess.run(words, capture_output=True, text=True, timeout=900)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_forked_process_leaves_its_parents_sessions_alone(open_store):
    store = open_store(TABLE)
    t = store.table("t")
    t.insert("a", 0, {"value": np.arange(8)})
    store.flush()
    sampler = t.sampler(2)
    writer = store.writer("w", "t")
    batch = sampler.sample(timeout_s=300.0)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            signal.alarm(60)
            with refused(UsageError, "client (of a store)"):
                sampler.sample()
            sampler.close()
            writer = None
            status = 0
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    batch.ack()
    sampler.sample(timeout_s=300.0).ack()
    writer.append({"value": np.int64(9)})
    writer.insert("t", 1, timeout_s=300.0)
    writer.close(timeout_s=300.0)
    assert t.describe()["num_items"] == 9


def test_a_forked_process_does_not_wait_for_its_parents_checkpoints(tmp_path):
    durable = {"durability": "sync", "durability_ms": 600_000.0}
    disk = {"disk_bytes": 1 << 20, "disk_directory": tmp_path / "disk"}
    with Store(
        StoreConfig.of([TABLE], memory_bytes=1 << 20, **disk, **durable)
    ) as store:
        writer = store.writer("w", "t")
        writer.append({"value": np.int64(1)})
        writer.insert("t", 1, timeout_s=300.0)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(60)
                with refused(UsageError, "client (of a store)"):
                    writer.flush()
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        writer.close(timeout_s=300.0)
