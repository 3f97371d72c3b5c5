"""Stresses a store whose machine repeatedly runs out of disk, memory or other limits.

``limits_storm.py storm FOLDER FAULTS SEED [KIND ...]`` mounts small file systems in
FOLDER for the kinds ``disk`` and ``shm``, so it needs its own mount namespace.
``limits_storm.py serve FOLDER DURABILITY`` runs the store's process. After each fault,
the storm compares every byte of every acknowledged item with the expected bytes; after
a lost host, only the items that a checkpoint or a durable flush covered must remain.
"""

from __future__ import annotations

import contextlib
import dataclasses
import encodings.idna  # noqa: F401 - cannot be imported later as another user
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tengen import _core
from tengen.errors import TengenError
from tengen.store import Column, Sampler, Selector, Store, StoreConfig, TableConfig

SIZE = 700
PATIENCE_S = 120.0
# A user ID without other processes, because the thread limit counts per user.
USER = 61234
DISK_BYTES = 64 << 20
SHM_BYTES = 48 << 20
CLIENTS = ("here", "far")
KINDS = ("disk", "shm", "memory", "threads", "descriptors", "host")

TABLE = TableConfig(
    name="t",
    columns={
        "number": Column(dtype="int64"),
        "x": Column(dtype="uint8", shape=(SIZE,)),
    },
    sampler=Selector(kind="prioritized", exponent=1.0),
    max_items=100_000,
    steps_per_chunk=4,
)
# A table with one item, which greedy samplers sample in very large batches.
GREEDY = dataclasses.replace(
    TABLE, name="greedy", sampler=Selector(kind="uniform"), max_items=1
)


def bytes_of(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, SIZE, np.uint8)


def serve(folder: Path, durability: str) -> None:
    """Runs the store until standard input ends, then closes the store."""
    is_alone = os.geteuid() == 0 and durability.endswith("-alone")
    disk: dict[str, Any] = {
        "disk_bytes": 32 << 20,
        "disk_directory": folder / "disk" / "rows",
        "durability": durability.removesuffix("-alone"),
        "durability_ms": 50.0,
    }
    store = Store(
        StoreConfig.of(
            [TABLE, GREEDY],
            memory_bytes=24 << 20,
            directory=folder / "shm" / "store",
            listen="127.0.0.1:0",
            **{} if durability.startswith("none") else disk,
        )
    )
    if is_alone:
        for path in (folder / "shm", folder / "disk", folder):
            for one in (path, *path.rglob("*")):
                os.chown(one, USER, USER)
        os.setuid(USER)
    print(json.dumps({"address": store.address, "alone": is_alone}), flush=True)
    line = bytearray(64)
    while size := without_memory_error(os.readv, 0, [line]):
        without_memory_error(set_limit_of, line, size)
        without_memory_error(os.write, 1, b"set\n")
    store.close()
    print("closed", flush=True)


@contextlib.contextmanager
def as_root() -> Iterator[None]:
    """Switches to the real user ID, root; clients run as the store's user otherwise."""
    before = os.geteuid()
    os.seteuid(os.getuid())
    try:
        yield
    finally:
        os.seteuid(before)


def without_memory_error(work: Callable[..., Any], *args: object) -> Any:
    """Repeats the work until it has memory, as even lifting a limit needs some."""
    while True:
        with contextlib.suppress(MemoryError):
            return work(*args)


def set_limit_of(line: bytearray, size: int) -> None:
    set_limit(*map(int, line[:size].split()))


def set_limit(kind: int, most: int) -> None:
    """Sets a soft limit of this process; -1 raises it to the hard limit."""
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (hard if most < 0 else most, hard))


class Machine:
    """A store's process, its file systems and its resource limits."""

    def __init__(self, folder: Path, durability: str) -> None:
        self.folder = folder
        self.durability = durability
        self.start()

    def start(self) -> None:
        with as_root():
            self.process = subprocess.Popen(
                [sys.executable, __file__, "serve", str(self.folder), self.durability],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the store did not start"
        told = json.loads(line)
        self.address, self.is_alone = told["address"], told["alone"]
        if self.is_alone:
            os.seteuid(USER)

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        assert self.process.stdout.read() == "closed\n"
        assert self.process.wait() == 0

    def lose(self) -> None:
        """Kills the store and deletes its shared memory, like the loss of a host."""
        with as_root():
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            shutil.rmtree(self.folder / "shm" / "store")

    @contextlib.contextmanager
    def full(self, name: str) -> Iterator[None]:
        """Fills a file system until it has no free byte."""
        ballast = self.folder / name / "ballast"
        with ballast.open("wb", buffering=0) as file:
            for size in (1 << 20, 4096, 1):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(b"x" * size)
        try:
            yield
        finally:
            ballast.unlink()

    @contextlib.contextmanager
    def limit(self, kind: int, most: int) -> Iterator[None]:
        self.tell(kind, most)
        try:
            yield
        finally:
            self.tell(kind, -1)

    def tell(self, kind: int, most: int) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{kind} {most}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer == "set\n", (answer, self.process.wait())

    def status(self, name: str) -> int:
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        lines = [line for line in text.splitlines() if line.startswith(name + ":")]
        return int(lines[0].split()[1])

    def num_descriptors(self) -> int:
        with as_root():
            return len(os.listdir(f"/proc/{self.process.pid}/fd"))


class Storm:
    """Clients of an overloaded store, and the items that the store must not lose."""

    def __init__(self, folder: Path, kinds: list[str], seed: int) -> None:
        of_disk = ("disk", "host") if seed % 3 == 2 else ()
        self.kinds = [kind for kind in kinds if kind not in of_disk]
        self.rng = random.Random(seed)
        self.durability = ("checkpoint", "sync", "none")[seed % 3]
        self.machine = Machine(folder, self.durability + "-alone")
        self.inserted: set[int] = set()  # flushed successfully
        self.kept: set[int] = set()  # durable: survive the loss of the host
        self.doubtful: set[int] = set()  # possibly stored, but their flush failed
        self.next = 0
        self.errors: dict[str, set[str]] = {kind: set() for kind in KINDS}
        self.kind = ""
        self.connect()

    def connect(self) -> None:
        address = self.machine.folder / "shm" / "store"
        self.stores = {
            "here": Store.connect(address),
            "far": Store.connect(self.machine.address),
        }
        self.writers = {
            name: store.writer(name, "t") for name, store in self.stores.items()
        }

    def disconnect(self) -> None:
        for store in self.stores.values():
            with contextlib.suppress(TengenError, _core.CoreError):
                store.close()
        self.stores, self.writers = {}, {}

    def may_fail(self, work: Callable[[], object]) -> bool:
        """Returns whether a request succeeds; an error must have one line."""
        refused = ""
        try:
            work()
        except (TengenError, _core.CoreError) as error:
            self.errors[self.kind].add(str(error)[:200])
            refused = str(error)
        assert "\n" not in refused
        assert "Traceback" not in refused
        assert self.machine.process.poll() is None, self.machine.process.poll()
        return not refused

    def insert(self, name: str, count: int = 12) -> bool:
        """Inserts items with a client; the call after an error reopens the writer."""
        numbers = range(self.next, self.next + count)
        self.next += count

        def work() -> None:
            if name not in self.writers:
                self.writers[name] = self.stores[name].writer(name, "t")
            writer = self.writers[name]
            for number in numbers:
                writer.append({"number": np.int64(number), "x": bytes_of(number)})
                writer.insert("t", 1)
            writer.flush(timeout_s=PATIENCE_S)

        if self.may_fail(work):
            self.inserted.update(numbers)
            if self.durability == "sync":
                self.kept.update(numbers)
            return True
        self.doubtful.update(numbers)
        with contextlib.suppress(TengenError, _core.CoreError):
            self.writers.pop(name).close(timeout_s=1.0)
        return False

    def checkpoint(self) -> bool:
        if self.durability == "none":
            return True
        before = set(self.inserted)
        if not self.may_fail(lambda: self.stores["here"].checkpoint(PATIENCE_S)):
            return False
        self.kept |= before
        return True

    def until(self, work: Callable[[], bool]) -> None:
        """Repeats ``work`` until it succeeds, as it must after the fault has ended."""
        end = time.monotonic() + PATIENCE_S
        while not work():
            assert time.monotonic() < end, self.errors[self.kind]
            time.sleep(0.05)

    def check(self, name: str, needed: set[int]) -> None:
        """Samples all items of the table and compares every byte."""
        seen: set[int] = set()
        table = self.stores[name].table("t")
        num_items = table.describe()["num_items"]
        with contextlib.closing(table.sampler(16, num_ahead=0)) as sampler:
            # A batch has one item from each sixteenth; 40 passes find all items.
            for _ in range(40 * num_items // 16 + 40):
                batch = sampler.sample(timeout_s=PATIENCE_S)
                numbers = batch.columns["number"].ravel().tolist()
                for number, x in zip(numbers, batch.columns["x"], strict=True):
                    assert (x.ravel() == bytes_of(number)).all(), number
                    seen.add(number)
                batch.ack()
                if len(seen) == num_items:
                    break
        assert len(seen) == num_items, "an item has another's bytes"
        lost = sorted(needed - seen)
        assert not lost, f"{len(lost)} of {len(needed)} were lost, from {lost[0]} on"
        assert seen <= self.inserted | self.doubtful

    def open_greedy(self, stack: contextlib.ExitStack) -> list[Sampler]:
        """Opens samplers with the largest batch that the store accepts."""
        store = stack.enter_context(Store.connect(self.machine.address))
        # With a disk, all chunks of a batch must fit in the store's memory together.
        num_samples = 32_768 if self.durability == "none" else 4_000
        with store.writer("greedy", "greedy") as writer:
            writer.append({"number": np.int64(0), "x": bytes_of(0)})
            writer.insert("greedy", 1)
        table = store.table("greedy")
        return [
            stack.enter_context(
                contextlib.closing(table.sampler(num_samples, num_ahead=0))
            )
            for _ in range(12)
        ]

    def be_greedy(self, samplers: list[Sampler]) -> None:
        """Samples until the store has no memory for the next batch."""
        for sampler in samplers:
            if not self.may_fail(lambda one=sampler: one.sample(PATIENCE_S)):  # type: ignore[misc]
                break

    def crowd(self, count: int) -> None:
        """Connects up to ``count`` clients, until the store refuses one."""
        with contextlib.ExitStack() as stack:
            for _ in range(count):

                def work() -> None:
                    address = self.machine.folder / "shm" / "store"
                    store = Store.connect(self.machine.address)
                    stack.callback(store.close)
                    stack.enter_context(
                        contextlib.closing(store.table("t").sampler(2, num_ahead=0))
                    )
                    near = Store.connect(address, patience_s=0.1)
                    stack.callback(near.close)
                    stack.enter_context(
                        contextlib.closing(near.table("t").sampler(2, num_ahead=0))
                    )

                if not self.may_fail(work):
                    break

    def fault(self, kind: str) -> None:
        self.kind = kind
        machine = self.machine
        if kind == "disk":
            with machine.full("disk"):
                for name in CLIENTS:
                    self.insert(name)
                self.checkpoint()
                self.check(self.rng.choice(CLIENTS), self.inserted)
        elif kind == "shm":
            with machine.full("shm"):
                self.crowd(2)
                # Skipped without a disk, because removers then free memory for inserts.
                for name in CLIENTS if self.durability != "none" else ():
                    self.insert(name)
        elif kind == "memory":
            # Python itself needs a few MiB, even to release a lock.
            spare = self.rng.choice((6 << 20, 12 << 20, 40 << 20))
            with contextlib.ExitStack() as stack:
                # The samplers' threads must exist before the limit applies.
                greedy = self.open_greedy(stack)
                most = (machine.status("VmSize") << 10) + spare
                stack.enter_context(machine.limit(resource.RLIMIT_AS, most))
                self.be_greedy(greedy)
                self.crowd(2)
                self.insert(self.rng.choice(CLIENTS))
                self.checkpoint()
        elif kind == "threads":
            most = machine.status("Threads") + self.rng.randrange(4)
            with machine.limit(resource.RLIMIT_NPROC, most):
                self.crowd(8)
                self.insert(self.rng.choice(CLIENTS))
        elif kind == "descriptors":
            with machine.limit(
                resource.RLIMIT_NOFILE,
                machine.num_descriptors() + self.rng.randrange(8),
            ):
                self.crowd(8)
                self.insert(self.rng.choice(CLIENTS))
                self.checkpoint()
        else:
            self.until(self.checkpoint)
            self.disconnect()
            machine.lose()
            machine.start()
            self.inserted = set(self.kept)
            self.connect()
        for name in CLIENTS:
            self.until(lambda name=name: self.insert(name))  # type: ignore[misc]
        self.until(self.checkpoint)
        self.check(self.rng.choice(CLIENTS), self.inserted)
        if "disk" in self.kinds:
            # Rows must leave disk space for the log and the states.
            room = os.statvfs(machine.folder / "disk")
            assert room.f_bavail * room.f_frsize > DISK_BYTES // 2, room

    def run(self, num_faults: int) -> None:
        for name in CLIENTS:
            assert self.insert(name)
        counts = dict.fromkeys(self.kinds, 0)
        for index in range(num_faults):
            kind = self.kinds[index % len(self.kinds)]
            self.fault(kind)
            counts[kind] += 1
        # The items must survive a clean restart.
        self.disconnect()
        if self.durability != "none":
            self.machine.close()
            self.machine.start()
            self.connect()
            self.check("far", self.inserted)
            self.disconnect()
        self.machine.close()
        told = {
            "faults": counts,
            "items": len(self.inserted),
            "refused": {kind: sorted(errors) for kind, errors in self.errors.items()},
            "threads_limited": self.machine.is_alone,
        }
        print(json.dumps(told))


def storm(folder: Path, num_faults: int, seed: int, kinds: list[str]) -> None:
    for name, size in (("disk", DISK_BYTES), ("shm", SHM_BYTES)):
        (folder / name).mkdir()
        if "disk" in kinds or "shm" in kinds:
            subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", folder / name],
                check=True,
            )
    Storm(folder, kinds, seed).run(num_faults)


if __name__ == "__main__":
    threading.excepthook = lambda given: os._exit(70)
    if sys.argv[1] == "serve":
        serve(Path(sys.argv[2]), sys.argv[3])
    else:
        _, _, to, faults, number, *chosen = sys.argv
        storm(Path(to), int(faults), int(number), chosen or list(KINDS))
