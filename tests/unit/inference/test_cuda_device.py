"""The order of work on a GPU, on a made-up one that is as late as a GPU may be.

Work waits in its stream until somebody waits for it; then the streams' work is done in
a random order of those that CUDA allows. What orders nothing shows as a wrong answer.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import deque
from collections.abc import Callable

import pytest
import torch

from tengen.inference.device import CudaDevice

Work = Callable[[], None]


class Mark:
    """A place in a stream."""

    is_reached = False


class MadeUpGpu:
    """Streams, events and graphs, as ``torch.cuda`` has them."""

    def __init__(self, seed):
        self._random = random.Random(seed)
        self._lock = threading.RLock()
        self._here = threading.local()
        self.streams: list[MadeUpStream] = [MadeUpStream(self)]
        self.num_waits = 0

    @property
    def current(self):
        return getattr(self._here, "stream", self.streams[0])

    def make_stream(self, where, priority=0):
        self.streams.append(MadeUpStream(self))
        return self.streams[-1]

    @contextlib.contextmanager
    def use(self, stream):
        before = self.current
        self._here.stream = stream
        yield
        self._here.stream = before

    @contextlib.contextmanager
    def capture(self, graph, *, stream, **options):
        self._here.graph = graph
        with self.use(stream):
            yield
        self._here.graph = None

    def launch(self, work):
        graph = getattr(self._here, "graph", None)
        if graph is not None:
            graph.works.append(work)
        else:
            self.add(self.current, work, [])

    def add(self, stream, work, after):
        with self._lock:
            stream.queue.append((work, after))

    def synchronize(self, where=None):
        self.run_until(lambda: not any(stream.queue for stream in self.streams))

    def run_until(self, is_over):
        with self._lock:
            while not is_over():
                heads = [
                    stream
                    for stream in self.streams
                    if stream.queue
                    and all(mark.is_reached for mark in stream.queue[0][1])
                ]
                work, _ = self._random.choice(heads).queue.popleft()
                work()


class MadeUpStream:
    def __init__(self, gpu):
        self.queue: deque[tuple[Work, list[Mark]]] = deque()
        self._gpu = gpu

    def wait_event(self, event):
        marks = [] if event.mark is None else [event.mark]
        self._gpu.add(self, lambda: None, marks)


class MadeUpEvent:
    def __init__(self, gpu):
        self.mark: Mark | None = None
        self._gpu = gpu

    def record(self):
        self.mark = mark = Mark()
        self._gpu.add(self._gpu.current, lambda: setattr(mark, "is_reached", True), [])

    def synchronize(self):
        mark = self.mark
        self._gpu.run_until(lambda: mark is None or mark.is_reached)


class MadeUpGraph:
    def __init__(self, gpu):
        self.works: list[Work] = []
        self._gpu = gpu

    def replay(self):
        for work in self.works:
            self._gpu.launch(work)


@pytest.fixture(params=range(5))
def gpu(request, monkeypatch):
    made = MadeUpGpu(request.param)
    for name, fake in {
        "Stream": made.make_stream,
        "Event": lambda blocking=False: MadeUpEvent(made),
        "CUDAGraph": lambda: MadeUpGraph(made),
        "stream": made.use,
        "graph": made.capture,
        "device": lambda where: contextlib.nullcontext(),
        "synchronize": made.synchronize,
        "graph_pool_handle": lambda: (0, 1),
    }.items():
        monkeypatch.setattr(torch.cuda, name, fake)
    return made


def test_lanes_of_several_threads_get_their_own_answers(gpu):
    device = CudaDevice("cuda:0")
    # What the graphs of a device work on, as tengen.inference.device has it.
    shared = {"asked": 0, "answer": 0}

    def network():
        gpu.launch(lambda: shared.update(answer=shared["asked"] ** 2))

    launch = device.record(network)
    wrong = []

    def work(first):
        lane, here, beside = device.lane(), {"in": 0, "out": 0}, {"in": 0, "out": 0}

        def copy_in():
            gpu.launch(lambda: here.update({"in": beside["in"]}))

        def compute():
            gpu.launch(lambda: shared.update(asked=here["in"]))
            time.sleep(1e-4)  # another thread may come here
            launch()
            gpu.launch(lambda: here.update(out=shared["answer"]))

        def copy_out():
            gpu.launch(lambda: beside.update(out=here["out"]))

        for asked in range(first, first + 30):
            beside["in"] = asked
            lane.run(copy_in, compute, copy_out)
            if beside["out"] != asked**2:
                wrong.append(asked)

    threads = [threading.Thread(target=work, args=(100 * i,)) for i in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_what_is_recorded_has_run_before_on_finished_inputs(gpu):
    device = CudaDevice("cuda:0")
    weights = {"loaded": False}
    seen = []
    # As a network's weights come: on the default stream, which waits for nobody.
    gpu.launch(lambda: weights.update(loaded=True))
    launch = device.record(lambda: gpu.launch(lambda: seen.append(weights["loaded"])))
    # Kernels are chosen by running, and all of it is over before recording starts.
    assert len(seen) >= 1
    assert all(seen)
    num_before = len(seen)
    device.synchronize()
    assert len(seen) == num_before  # recorded, not run
    launch()
    device.synchronize()
    assert len(seen) == num_before + 1


def test_recording_leaves_the_stream_as_it_was(gpu):
    device = CudaDevice("cuda:0")
    device.record(lambda: None)()
    assert gpu.current is gpu.streams[0]


def test_what_is_recorded_runs_on_the_stream_of_the_device(gpu):
    device = CudaDevice("cuda:0")
    default, own = gpu.streams
    called_on = []

    def function():
        called_on.append(gpu.current)
        gpu.launch(lambda: None)

    launch = device.record(function)
    # Before it is recorded too: libraries keep what they need for each stream.
    assert all(stream is own for stream in called_on)
    launch()
    assert (len(default.queue), len(own.queue)) == (0, 1)
