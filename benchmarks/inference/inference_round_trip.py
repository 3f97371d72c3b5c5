"""How close a round trip to inference comes to a bare C loop that moves the same bytes.

    python benchmarks/inference/inference_round_trip.py [--rounds 7] [--seconds 1.0]

Each step writes the observations of 64 environments anew, 7,056 bytes each (84 x 84),
asks a null network that sums each row, and takes the 64 answers. Both sides of every
pair write and sum by the same C functions and differ in what lies between: in process
a call, against ``tengen.inference.drive``; between two processes of a host shared
memory and 16 + 32 bytes on a Unix socket; between two processes over TCP on loopback
all bytes. The loop and tengen take turns, and medians of their rounds are compared.

Prints a table, and the last line as JSON. Needs a C compiler.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import resource
import socket
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tengen.inference import RowArrays, drive
from tengen.inference.central import (
    INFERENCE,
    InferenceClient,
    InferenceServer,
    Place,
    Places,
    ask_model,
    connect_rows,
    serve_rows,
)
from tengen.tensors import Signature, TensorSpec
from tengen.transport import Client, HostFolder, Server, listen_on

NUM_ROWS, ROW_BYTES = 64, 84 * 84
SIGNATURE = Signature(
    inputs={"screen": TensorSpec(dtype="uint8", shape=(84, 84))},
    outputs={"value": TensorSpec()},
)
SOURCE = r"""
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

void write_rows(uint8_t* rows, int64_t n, int64_t bytes, int64_t step) {
  for (int64_t i = 0; i < n; ++i) {
    memset(rows + i * bytes, (int)(i + step) & 255, bytes);
  }
}
void sum_rows(const uint8_t* rows, int64_t n, int64_t bytes, float* out) {
  for (int64_t i = 0; i < n; ++i) {
    uint32_t sum = 0;
    for (int64_t j = 0; j < bytes; ++j) sum += rows[i * bytes + j];
    out[i] = (float)sum;
  }
}
static int take(int fd, void* to, size_t size) {
  while (size > 0) {
    ssize_t n = read(fd, to, size);
    if (n <= 0) return 0;
    to = (char*)to + n;
    size -= n;
  }
  return 1;
}
static void give(int fd, void* head, size_t head_size, void* body, size_t body_size) {
  struct iovec parts[2] = {{head, head_size}, {body, body_size}};
  struct iovec* part = parts;
  while (part < parts + 2) {
    if (part->iov_len == 0) {
      ++part;
      continue;
    }
    ssize_t n = writev(fd, part, parts + 2 - part);
    if (n <= 0) return;
    for (; n > 0; ++part) {
      size_t taken = (size_t)n < part->iov_len ? (size_t)n : part->iov_len;
      part->iov_base = (char*)part->iov_base + taken;
      part->iov_len -= taken;
      n -= taken;
      if (part->iov_len > 0) break;
    }
  }
}
double call_loop(uint8_t* rows, int64_t n, int64_t bytes, float* out, int64_t steps) {
  double total = 0;
  for (int64_t s = 0; s < steps; ++s) {
    write_rows(rows, n, bytes, s);
    sum_rows(rows, n, bytes, out);
    total += out[0];
  }
  return total;
}
double ask_loop(int fd, int is_shared, uint8_t* rows, int64_t n, int64_t bytes,
                float* out, int64_t steps) {
  char head[16] = {0}, answer[32];
  double total = 0;
  for (int64_t s = 0; s < steps; ++s) {
    write_rows(rows, n, bytes, s);
    give(fd, head, sizeof head, rows, is_shared ? 0 : n * bytes);
    take(fd, answer, sizeof answer);
    if (!is_shared) take(fd, out, n * sizeof(float));
    total += out[0];
  }
  return total;
}
void answer_loop(int fd, int is_shared, uint8_t* rows, int64_t n, int64_t bytes,
                 float* out) {
  char head[16], answer[32] = {0};
  while (take(fd, head, sizeof head)) {
    if (!is_shared && !take(fd, rows, n * bytes)) return;
    sum_rows(rows, n, bytes, out);
    give(fd, answer, sizeof answer, out, is_shared ? 0 : n * sizeof(float));
  }
}
"""


COMPILE = ("cc", "-O3", "-march=native", "-shared", "-fPIC")


def build() -> ctypes.CDLL:
    """Compiles the loops."""
    folder = Path(tempfile.mkdtemp())
    (folder / "loops.c").write_text(SOURCE)
    library = folder / "loops.so"
    subprocess.run(
        [*COMPILE, "-o", library, folder / "loops.c"],
        check=True,
    )
    loops = ctypes.CDLL(str(library))
    loops.call_loop.restype = loops.ask_loop.restype = ctypes.c_double
    return loops


def address_of(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


SIZES = ctypes.c_int64(NUM_ROWS), ctypes.c_int64(ROW_BYTES)


class NullNetwork:
    """A backend that sums each row."""

    name, version = "null", "0"
    precision: Literal["fp32"] = "fp32"
    batch_shape: Literal["dynamic"] = "dynamic"
    signature = SIGNATURE

    def __init__(self, loops: ctypes.CDLL) -> None:
        self._sum = loops.sum_rows

    def bind(self, inputs: Any, outputs: Any, state: Any = None) -> Any:
        return NullRunner(self._sum, inputs["screen"], outputs["value"])


class NullRunner:
    def __init__(self, function: Any, screen: Any, value: Any) -> None:
        self._arrays = screen, value
        self._call = function
        self._screen, self._value = address_of(screen), address_of(value)

    def run(self, num_rows: int) -> None:
        self._call(self._screen, num_rows, SIZES[1], self._value)


class WritingPort:
    """Writes the rows of every step anew."""

    def __init__(self, loops: ctypes.CDLL, arrays: RowArrays) -> None:
        self._write = loops.write_rows
        self._screen = address_of(arrays.inputs["screen"])
        self._value = arrays.outputs["value"]
        self._steps_left = self._step = 0
        self.total = 0.0

    def begin(self, steps: int) -> WritingPort:
        self._steps_left, self._step, self.total = steps, 0, 0.0
        return self

    def next(self) -> int:
        if self._steps_left == 0:
            return 0
        self._write(self._screen, *SIZES, ctypes.c_int64(self._step))
        return NUM_ROWS

    def done(self) -> None:
        self.total += float(self._value[0])
        self._step += 1
        self._steps_left -= 1


def cpu_s() -> float:
    """CPU-seconds of this process and of the children that have ended."""
    kinds = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    usages = [resource.getrusage(kind) for kind in kinds]
    return sum(one.ru_utime + one.ru_stime for one in usages)


Loop = Callable[[int], float]


def in_process(loops: ctypes.CDLL) -> tuple[Loop, Loop, Callable[[], None]]:
    arrays = RowArrays(SIGNATURE, NUM_ROWS)
    port = WritingPort(loops, arrays)
    runner = NullNetwork(loops).bind(arrays.inputs, arrays.outputs)
    rows = np.zeros((NUM_ROWS, ROW_BYTES), np.uint8)
    out = np.zeros(NUM_ROWS, np.float32)

    def bare(steps: int) -> float:
        return float(
            loops.call_loop(
                address_of(rows), *SIZES, address_of(out), ctypes.c_int64(steps)
            )
        )

    def ours(steps: int) -> float:
        drive(port.begin(steps), runner)
        return port.total

    return bare, ours, lambda: None


def _answer(loops: ctypes.CDLL, fd: int, is_shared: bool, memory: Any) -> None:
    rows = np.frombuffer(memory, np.uint8, NUM_ROWS * ROW_BYTES)
    out = np.frombuffer(memory, np.float32, NUM_ROWS, NUM_ROWS * ROW_BYTES)
    loops.answer_loop(fd, int(is_shared), address_of(rows), *SIZES, address_of(out))


def _stop_when_told(server: InferenceServer, pipe: Any) -> None:
    pipe.recv()
    server.stop()


def _serve(loops: ctypes.CDLL, folder: str, pipe: Any) -> None:
    server = InferenceServer(SIGNATURE, max_rows=NUM_ROWS)
    place = HostFolder("inference", Path(folder))
    service = serve_rows(server, SIGNATURE)
    doors = [
        Server(place.listen(), service),
        Server(listen_on(INFERENCE, "127.0.0.1:0"), service),
    ]
    server.set_model(NullNetwork(loops), version=0, number=0)
    threading.Thread(target=_stop_when_told, args=(server, pipe)).start()
    pipe.send(doors[1].address)
    server.run()
    for door in doors:
        door.close()
    place.remove()


def between(
    loops: ctypes.CDLL, is_shared: bool
) -> tuple[Loop, Loop, Callable[[], None]]:
    """Two processes, by shared memory or by TCP."""
    import mmap

    context = multiprocessing.get_context("fork")
    memory = mmap.mmap(-1, NUM_ROWS * ROW_BYTES + 4 * NUM_ROWS)
    if is_shared:
        near, far = socket.socketpair()
    else:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            near = socket.create_connection(listening.getsockname())
            far, _ = listening.accept()
        for one in (near, far):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def child() -> None:
        near.close()  # or its end would never be seen
        _answer(loops, far.fileno(), is_shared, memory)

    answering = context.Process(target=child)
    answering.start()
    far.close()
    mine = memory if is_shared else mmap.mmap(-1, len(memory))
    rows = np.frombuffer(mine, np.uint8, NUM_ROWS * ROW_BYTES)
    out = np.frombuffer(mine, np.float32, NUM_ROWS, NUM_ROWS * ROW_BYTES)

    def bare(steps: int) -> float:
        return float(
            loops.ask_loop(
                near.fileno(),
                int(is_shared),
                address_of(rows),
                *SIZES,
                address_of(out),
                ctypes.c_int64(steps),
            )
        )

    folder = tempfile.mkdtemp() + "/i"
    pipe, theirs = context.Pipe()
    serving = context.Process(target=_serve, args=(loops, folder, theirs))
    serving.start()
    address = pipe.recv()
    asked = Client(INFERENCE, folder if is_shared else address)
    place = Place(
        connect_rows(asked, SIGNATURE, NUM_ROWS),
        lambda patience_s: ask_model(asked, patience_s),
    )
    client = InferenceClient(Places([place]), SIGNATURE, NUM_ROWS, threading.Event())
    port = WritingPort(loops, client.arrays)

    def ours(steps: int) -> float:
        drive(port.begin(steps), client)
        return port.total

    def end() -> None:
        client.close()
        pipe.send(None)
        serving.join()  # it has the other end of the loop's socket too
        near.close()
        answering.join()

    return bare, ours, end


def process_s(pid: int) -> float:
    """CPU-seconds of a living process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(way: str, rounds: int, seconds: float) -> dict[str, Any]:
    loops = build()
    if way == "call":
        bare, ours, end = in_process(loops)
    else:
        bare, ours, end = between(loops, is_shared=way == "shared memory")
    rates: dict[str, list[float]] = {"bare": [], "tengen": []}
    costs: dict[str, float] = {"bare": 0.0, "tengen": 0.0}
    done = {"bare": 0, "tengen": 0}
    steps = 50
    start_s = time.perf_counter()
    assert bare(steps) == ours(steps)
    steps = max(50, int(2 * steps * seconds / (time.perf_counter() - start_s)))
    children = [child.pid for child in multiprocessing.active_children() if child.pid]
    for _ in range(rounds):
        for name, loop in (("bare", bare), ("tengen", ours)):
            used_s = cpu_s() + sum(map(process_s, children))
            start_s = time.perf_counter()
            loop(steps)
            rates[name].append(NUM_ROWS * steps / (time.perf_counter() - start_s))
            costs[name] += cpu_s() + sum(map(process_s, children)) - used_s
            done[name] += NUM_ROWS * steps
    end()
    middle = {name: statistics.median(found) for name, found in rates.items()}
    per_cpu_s = {name: done[name] / costs[name] for name in done}
    return {
        "way": way,
        "bare_per_s": round(middle["bare"]),
        "tengen_per_s": round(middle["tengen"]),
        "ratio": round(middle["tengen"] / middle["bare"], 3),
        "bare_per_cpu_s": round(per_cpu_s["bare"]),
        "tengen_per_cpu_s": round(per_cpu_s["tengen"]),
        "cpu_ratio": round(per_cpu_s["tengen"] / per_cpu_s["bare"], 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0)
    args = parser.parse_args()
    found = []
    for way in ("call", "shared memory", "TCP"):
        found.append(measure(way, args.rounds, args.seconds))
        print("  ".join(f"{name} {value}" for name, value in found[-1].items()))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
