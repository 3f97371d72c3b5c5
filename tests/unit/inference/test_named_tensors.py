"""Rows of named tensors of any type and rank, with state that a network keeps."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from tengen.config import to_dict
from tengen.errors import UsageError
from tengen.inference import (
    DriveStats,
    InferenceConfig,
    allocate,
    bind_port,
    drive,
    open_backend,
    probe,
)
from tengen.inference.backend import NO_STATE, check_arrays
from tengen.inference.config import BatchShape, Precision
from tengen.inference.determinism import FixedBackend
from tengen.inference.device import rate
from tengen.inference.torch_backend import LoadedHead, TorchRunner, load_head
from tengen.nets import MlpConfig
from tengen.nets.nature import NatureConfig
from tengen.tensors import Signature, TensorSpec
from tests.host_device import HostDevice
from tests.refusals import refused

SIGNATURE = Signature(
    inputs={
        "observation/pixels": TensorSpec(dtype="uint8", shape=(2, 3, 3)),
        "observation/speed": TensorSpec(),
        "last_action": TensorSpec(dtype="int64", shape=(2,)),
    },
    outputs={
        "q": TensorSpec(shape=(4,)),
        "is_safe": TensorSpec(dtype="bool"),
    },
    state={
        "sum": TensorSpec(shape=(2,)),
        "steps": TensorSpec(dtype="int32"),
    },
)


class Summing(nn.Module):
    """Adds up what it saw; answers of the state before and of the row."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.arange(4.0))

    def forward(self, pixels, speed, last, total, steps):
        seen = pixels.float().mean((1, 2, 3)) + speed
        following = total + last.float()
        q = self.weight * (seen + following.sum(1))[:, None] + steps[:, None]
        return q, seen > 128, following, steps + 1


class Backend:
    name = "torch"
    version = "0"
    precision: Precision = "fp32"
    batch_shape: BatchShape = "dynamic"
    signature = SIGNATURE

    def bind(self, inputs, outputs, state=NO_STATE):
        head: Any = Summing()
        return TorchRunner(LoadedHead(head, SIGNATURE), inputs, outputs, state)


def made_inputs(num_rows, seed=0):
    rng = np.random.default_rng(seed)
    return {
        "observation/pixels": rng.integers(0, 256, (num_rows, 2, 3, 3), np.uint8),
        "observation/speed": rng.normal(size=num_rows).astype(np.float32),
        "last_action": rng.integers(0, 2, (num_rows, 2)),
    }


def by_hand(inputs, total, steps):
    seen = inputs["observation/pixels"].mean((1, 2, 3)) + inputs["observation/speed"]
    q = np.arange(4) * (seen + total.sum(1))[:, None] + steps[:, None]
    return q, seen > 128


@pytest.fixture(params=[None, 3])
def backend(request):
    return Backend() if request.param is None else FixedBackend(Backend(), 3)


def test_state_is_read_and_written_in_place(backend):
    inputs = made_inputs(5)
    outputs, state = allocate(SIGNATURE.outputs, 5), allocate(SIGNATURE.state, 5)
    state["sum"][4] = 7.0
    runner = backend.bind(inputs, outputs, state)
    total, steps = np.zeros((5, 2)), np.zeros(5)
    answered = set()
    for turn in range(3):
        for name, array in made_inputs(5, seed=turn).items():
            inputs[name][:] = array
        runner.run(4)
        total[:4] += inputs["last_action"][:4]
        q, is_safe = by_hand(inputs, total, steps)
        np.testing.assert_allclose(outputs["q"][:4], q[:4], rtol=1e-5)
        assert (outputs["is_safe"][:4] == is_safe[:4]).all()
        answered |= set(is_safe[:4].tolist())
        steps[:4] += 1
        assert (state["sum"][:4] == total[:4]).all()
        assert (state["steps"][:4] == steps[:4]).all()
    assert answered == {True, False}
    # Nobody asked for the last slot: what it has stays.
    assert state["sum"][4].tolist() == [7.0, 7.0]


def test_outputs_that_nobody_reads_are_left_out(backend):
    inputs, state = made_inputs(4), allocate(SIGNATURE.state, 4)
    safe = allocate({"is_safe": SIGNATURE.outputs["is_safe"]}, 4)
    backend.bind(inputs, safe, state).run(4)
    assert (safe["is_safe"] == by_hand(inputs, np.zeros((4, 2)), np.zeros(4))[1]).all()


def test_a_probe_asks_for_first_rows_of_episodes(backend):
    result = probe(backend, made_inputs(20), batch_rows=4, num_threads=2)
    assert result.num_rows == 2 * 4 * 20
    assert result.is_deterministic


def test_the_rate_of_any_network_is_measured():
    head = Summing()
    assert rate(LoadedHead(head, SIGNATURE), HostDevice(), 8, 0.01) > 0


class Episodes:
    """A port whose slots begin anew at the third row."""

    def __init__(self):
        self.inputs = made_inputs(2)
        self.outputs = allocate(SIGNATURE.outputs, 2)
        self.state = allocate(SIGNATURE.state, 2)
        self.seen: list[int] = []

    def next(self):
        if len(self.seen) == 2:
            self.state["steps"][:] = 0
        return 2 if len(self.seen) < 4 else 0

    def done(self):
        self.seen.append(int(self.state["steps"][0]))


def test_a_model_is_loaded_with_its_inputs_in_their_order(tmp_path):
    wanted = Signature(
        inputs={
            "observation": TensorSpec(shape=(3,)),
            "last_action": TensorSpec(shape=(2,)),
            "last_reward": TensorSpec(),
        },
        outputs={"value": TensorSpec(), "policy": TensorSpec(shape=(2,))},
    )
    net = MlpConfig(num_units=8).build(wanted)
    save_file(net.state_dict(), tmp_path / "weights.safetensors")
    meta = {"net": to_dict(net.config), "signature": to_dict(net.signature)}
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    before = torch.get_rng_state()
    # The second is made of what the first one left.
    first, second = (load_head(tmp_path) for _ in range(2))
    assert torch.equal(torch.get_rng_state(), before)
    rows = {name: torch.randn(5, *spec.shape) for name, spec in wanted.inputs.items()}
    with torch.no_grad():
        expected = net.eval().answer(rows, {})[0]
        for loaded in (first, second):
            for signature in (loaded.signature, loaded.head.net.signature):
                assert list(signature.inputs) == list(wanted.inputs)
            found = loaded.head(*rows.values())
            assert torch.equal(found[0], expected["value"])
            assert torch.equal(found[1], expected["policy"])
            for parameter in loaded.head.parameters():
                parameter.zero_()


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_network_of_this_process_answers_as_its_model(precision, tmp_path):
    wanted = Signature(
        inputs={"screen": TensorSpec(shape=(4, 36, 36), dtype="uint8")},
        outputs={"value": TensorSpec(), "policy": TensorSpec(shape=(3,))},
    )
    net = NatureConfig(lstm_units=8).build(wanted).eval()
    save_file(net.state_dict(), tmp_path / "weights.safetensors")
    meta = {"net": to_dict(net.config), "signature": to_dict(net.signature)}
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    config = InferenceConfig(
        devices="cpu", backend="torch", precision=precision, batch_shape="dynamic"
    )
    rows = {"screen": np.random.default_rng(1).integers(0, 256, (5, 4, 36, 36), "u1")}
    found = []
    for source in (tmp_path, net):
        backend = open_backend(source, config, 1)
        assert backend.signature == net.signature
        answers = allocate(backend.signature.outputs, 5)
        state = allocate(backend.signature.state, 5)
        runner = backend.bind(rows, answers, state)
        for _ in range(2):
            runner.run(5)
        found.append({**answers, **state})
    by_model, by_net = found
    assert all(np.abs(array).max() > 0 for array in by_net.values())
    assert by_net.keys() == by_model.keys()
    for name, array in by_model.items():
        np.testing.assert_array_equal(by_net[name], array, err_msg=name)


def test_openvino_wants_a_model():
    wanted = Signature(
        inputs={"observation": TensorSpec(shape=(3,))}, outputs={"value": TensorSpec()}
    )
    config = InferenceConfig(
        devices="cpu", backend="openvino", precision="fp32", batch_shape="dynamic"
    )
    with refused(UsageError, "inference.backend (openvino)"):
        open_backend(MlpConfig(num_units=8).build(wanted), config, 1)


def test_a_port_is_bound_with_its_state():
    port = Episodes()
    stats = drive(port, bind_port(Backend(), port), DriveStats())
    assert stats.num_evaluations == 8
    assert port.seen == [1, 2, 1, 2]


class SearchPort:
    """What ports of the core show."""

    planes = np.zeros((3, 1, 2, 2), np.float32)
    policy = np.zeros((3, 4), np.float32)
    value = np.zeros(3, np.float32)
    score: Any = np.zeros((3, 2), np.float32)


@pytest.mark.parametrize("has_score", [False, True])
@pytest.mark.parametrize("asks", [False, True])
def test_a_search_port_is_named(has_score, asks):
    given = []

    class Noting(Backend):
        signature = Signature(
            inputs={"planes": TensorSpec(shape=(1, 2, 2))},
            outputs={"policy": TensorSpec(shape=(4,)), "value": TensorSpec()}
            | ({"score": TensorSpec(shape=(2,))} if has_score else {}),
        )

        def bind(self, *arrays):
            given.extend(arrays)

    port = SearchPort()
    if not asks:
        port.score = None
    bind_port(Noting(), port)
    inputs, outputs = given
    assert inputs["planes"] is port.planes
    assert outputs["policy"] is port.policy
    assert outputs["value"] is port.value
    assert ("score" in outputs) is (has_score and asks)
    assert not asks or outputs.get("score", port.score) is port.score


def without(arrays, name):
    return {key: array for key, array in arrays.items() if key != name}


def broken():
    inputs, outputs, state = "inputs", "outputs", "state"
    yield inputs, lambda a: without(a, "last_action"), ("inputs", "last_action")
    yield inputs, lambda a: a | {"extra": a["last_action"]}, ("inputs (extra)",)
    yield outputs, lambda a: a | {"value": a["q"]}, ("outputs (value)",)
    yield outputs, lambda a: {}, ("outputs (none)", "is_safe")
    yield state, lambda a: without(a, "sum"), ("state (steps)", "sum")
    yield state, lambda a: {}, ("state (none)", "steps")
    yield inputs, lambda a: {k: v[:0] for k, v in a.items()}, ("inputs (0 rows)",)
    changes = {
        "rows": lambda array: array[:3],
        "dtype": lambda array: array.astype(np.float64),
        "rank": lambda array: array[..., None],
        "layout": lambda array: np.repeat(array, 2, axis=0)[::2],
    }
    for kind, name in (
        (inputs, "observation/pixels"),
        (outputs, "q"),
        (state, "sum"),
        (state, "steps"),
    ):
        for change in changes.values():
            yield (
                kind,
                lambda a, name=name, change=change: a | {name: change(a[name])},
                (f"{name} (", "4 rows"),
            )


@pytest.mark.parametrize(("kind", "change", "named"), list(broken()))
def test_wrong_arrays_are_refused_by_name(kind, change, named):
    arrays = {
        "inputs": made_inputs(4),
        "outputs": allocate(SIGNATURE.outputs, 4),
        "state": allocate(SIGNATURE.state, 4),
    }
    check_arrays(SIGNATURE, **arrays)
    arrays[kind] = change(arrays[kind])
    with refused(ValueError, *named):
        check_arrays(SIGNATURE, **arrays)


def test_a_network_without_state_takes_none():
    plain = dataclasses.replace(SIGNATURE, state={})
    inputs, outputs = made_inputs(4), allocate(SIGNATURE.outputs, 4)
    check_arrays(plain, inputs, outputs)
    with refused(ValueError, "state (steps)"):
        check_arrays(plain, inputs, outputs, allocate(SIGNATURE.state, 4))
