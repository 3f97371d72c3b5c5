from __future__ import annotations

import importlib.util
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tengen.errors import UsageError
from tengen.inference import InferenceConfig, choose, open_backend, probe
from tengen.inference.config import BatchShape
from tengen.inference.determinism import FixedBackend
from tengen.inference.openvino_backend import _core, supported_precisions
from tengen.tensors import Signature, TensorSpec
from tests.refusals import refused

needs_openvino = pytest.mark.skipif(
    importlib.util.find_spec("openvino") is None, reason="openvino is not here"
)


class Moody:
    """A backend whose answers depend on what the test says."""

    name = "torch"
    version = "0"
    batch_shape: BatchShape = "dynamic"
    signature = Signature(
        inputs={"planes": TensorSpec(shape=(2, 3, 3))},
        outputs={"policy": TensorSpec(shape=(4,)), "value": TensorSpec()},
    )

    def __init__(self, depends_on, precision="fp32", call_s=0.0):
        self.depends_on = depends_on
        self.precision = precision
        self.call_s = call_s

    def bind(self, inputs, outputs, state=None):
        return MoodyRunner(self, inputs["planes"], outputs["policy"], outputs["value"])


class MoodyRunner:
    def __init__(self, backend, planes, policy, value):
        self._backend = backend
        self._buffers = planes, policy, value

    def run(self, num_rows):
        time.sleep(self._backend.call_s)
        planes, policy, value = self._buffers
        n = num_rows
        own = planes[:n].sum(axis=(1, 2, 3))
        policy[:n] = own[:, None]
        value[:n] = own
        if self._backend.depends_on == "size":
            value[:n] += n
        if self._backend.depends_on == "neighbours":
            value[:n] += own.max()


@pytest.fixture
def rows():
    return np.random.default_rng(1).random((40, 2, 3, 3), np.float32)


@pytest.mark.parametrize(
    ("depends_on", "batch_shape", "wanted"),
    [
        ("row", "dynamic", True),
        ("size", "dynamic", False),
        ("size", "fixed", True),
        ("neighbours", "fixed", False),
    ],
)
def test_the_probe_finds_what_an_answer_depends_on(
    rows, depends_on, batch_shape, wanted
):
    backend = Moody(depends_on)
    if batch_shape == "fixed":
        backend = FixedBackend(backend, 8)
    result = probe(backend, {"planes": rows}, batch_rows=8, num_threads=2)
    assert result.is_deterministic is wanted


def test_the_probe_raises_what_a_thread_raised(rows):
    class Broken(Moody):
        num_bound = 0

        def bind(self, *buffers):
            self.num_bound += 1
            if self.num_bound == 3:
                raise RuntimeError("no memory")
            return super().bind(*buffers)

    with refused(RuntimeError, "no memory"):
        probe(Broken("row"), {"planes": rows}, batch_rows=8, num_threads=2)


@pytest.fixture
def choose_moody(monkeypatch, rows):
    """Chooses among moody backends; bf16 takes half as long as fp32.

    With rates nothing is timed, and the backend may be OpenVINO.
    """
    where = "tengen.inference.choice"

    def choose_with(
        depends_on="row", rates=None, native=None, num_threads=2, costs=None, **config
    ):
        opened = []

        def fake(_, config, __, *, outputs=None):
            call_s = {"fp32": 0.004, "bf16": 0.002}.get(config.precision, 0.0)
            opened.append(config.precision)
            backend = Moody(depends_on, config.precision, call_s=call_s)
            if config.batch_shape == "fixed":
                return FixedBackend(backend, config.batch_rows)
            return backend

        monkeypatch.setattr(f"{where}.open_backend", fake)
        if native is not None:
            monkeypatch.setattr(f"{where}.supported_precisions", lambda: native)
        if rates is not None:
            monkeypatch.setattr(f"{where}._trial", lambda *_: rates)
        name = "openvino" if rates else "torch"
        asked = InferenceConfig(devices="cpu", backend=name, **config)
        made = choose(Path(), asked, {"planes": rows}, num_threads, **costs or {})
        # What is chosen is what the probe looked at.
        assert opened[-1] == made.config.precision
        return made

    return choose_with


@pytest.mark.parametrize(
    ("depends_on", "batch_shape", "deterministic"),
    [("row", "dynamic", True), ("size", "fixed", True), ("neighbours", "fixed", False)],
)
def test_a_backend_that_fails_the_probe_is_padded_and_asked_again(
    choose_moody, depends_on, batch_shape, deterministic
):
    choice = choose_moody(depends_on)
    assert choice.config.batch_shape == batch_shape
    assert choice.is_deterministic is deterministic
    assert choice.record()["deterministic"] is deterministic


def test_the_faster_precision_is_taken(choose_moody):
    choice = choose_moody()
    assert choice.config.precision == "bf16"
    assert choice.rows_per_s["bf16"] > choice.rows_per_s["fp32"]


@pytest.mark.parametrize(
    ("native", "rates", "wanted"),
    [
        (
            ("fp32", "bf16", "int8"),
            {"fp32": 1000.0, "bf16": 1500.0, "int8": 2000.0},
            "inference computes in int8; evaluations/s of one thread: fp32 1,000, "
            "bf16 1,500 (1.50x), int8 2,000 (2.00x)",
        ),
        (
            ("fp32", "int8"),
            {"fp32": 1000.0, "int8": 1050.0},
            "inference computes in fp32; evaluations/s of one thread: fp32 1,000, "
            "int8 1,050 (1.05x); this processor has no native bf16",
        ),
        (
            ("fp32",),
            {"fp32": 1000.0},
            "inference computes in fp32; evaluations/s of one thread: fp32 1,000; "
            "this processor has no native bf16 or int8",
        ),
    ],
)
def test_the_trial_says_what_each_precision_gained(choose_moody, native, rates, wanted):
    assert choose_moody(rates=rates, native=native).summary() == wanted


@pytest.mark.parametrize(
    ("bf16", "int8", "wanted"),
    [
        (104.0, 109.0, "fp32"),
        (106.0, 116.0, "bf16"),
        (106.0, 117.0, "int8"),
        (90.0, 111.0, "int8"),
        (200.0, 150.0, "bf16"),
        (106.0, None, "bf16"),
    ],
)
def test_a_precision_must_be_worth_its_rounding(choose_moody, bf16, int8, wanted):
    rates = {"fp32": 100.0, "bf16": bf16} | ({} if int8 is None else {"int8": int8})
    choice = choose_moody(rates=rates)
    assert choice.config.precision == wanted
    assert choice.record()["rows_per_s"] == rates


@pytest.mark.parametrize(
    ("num_evaluations", "int8_s", "num_threads", "wanted"),
    [
        # Of 1,000 rows int8 saves 2 s of 10; quantising takes 1 s, or 1.5 s.
        (1000.0, 0.0, 1, "int8"),
        (1000.0, 1.0, 1, "int8"),
        (1000.0, 1.5, 1, "bf16"),
        # On two threads the rows take half the time, and quantising does not.
        (1000.0, 1.0, 2, "bf16"),
        (0.0, 99.0, 1, "int8"),
    ],
)
def test_what_quantising_costs_counts(
    choose_moody, num_evaluations, int8_s, num_threads, wanted
):
    choice = choose_moody(
        rates={"fp32": 50.0, "bf16": 100.0, "int8": 125.0},
        num_threads=num_threads,
        costs={"num_evaluations": num_evaluations, "int8_s": int8_s},
    )
    assert choice.config.precision == wanted
    assert choice.record()["int8_s"] == int8_s


@needs_openvino
def test_int8_is_tried_where_there_is_a_graph_of_it(model, int8_model, planes):
    config = InferenceConfig(backend="openvino")
    assert "int8" not in choose(model, config, {"planes": planes}, 1).rows_per_s
    rates = choose(int8_model, config, {"planes": planes}, 1).rows_per_s
    assert list(rates) == [*supported_precisions()]
    assert rates["int8"] > 0


def test_what_the_user_says_is_kept(choose_moody):
    choice = choose_moody("size", precision="fp32", batch_shape="dynamic")
    assert choice.config.precision == "fp32"
    assert choice.config.batch_shape == "dynamic"
    assert not choice.is_deterministic
    assert choice.rows_per_s == {}


def test_auto_leaves_nothing_open_on_a_real_model(model, planes):
    choice = choose(model, InferenceConfig(), {"planes": planes}, num_threads=2)
    assert choice.is_deterministic
    backend = open_backend(model, choice.config, 2)
    assert backend.name == choice.config.backend
    assert backend.precision == choice.config.precision
    assert backend.version == choice.version


def test_auto_falls_back_to_torch(model, planes, monkeypatch):
    _core.cache_clear()
    monkeypatch.setitem(sys.modules, "openvino", None)
    config = InferenceConfig(precision="fp32", batch_shape="fixed")
    assert choose(model, config, {"planes": planes}, 1).config.backend == "torch"
    with refused(UsageError, "precision (int8)"):
        choose(model, InferenceConfig(precision="int8"), {"planes": planes}, 1)


def test_an_open_choice_cannot_be_opened(model):
    with refused(UsageError, "inference.backend (auto)"):
        open_backend(model, InferenceConfig(), 1)
