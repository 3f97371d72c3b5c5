"""Models published by earlier versions have the same outputs and moves today.

The models cannot be regenerated, because current code writes a newer schema. The JSON
files beside the models contain the outputs of torch in float32 at that time, and the
moves of searches with 64 simulations, regenerated when searches began to use decisive
moves.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tengen
from tengen import games
from tengen.inference import InferenceConfig, open_backend
from tengen.models import load_model
from tengen.models.check import check_export, evaluate
from tengen.tensors import BoardSpec, Signature, TensorSpec

HERE = Path(__file__).parent
BACKENDS = [
    "torch",
    pytest.param(
        "openvino",
        marks=pytest.mark.skipif(
            importlib.util.find_spec("openvino") is None, reason="openvino is not here"
        ),
    ),
]


def answers_are_as_then(name: str, backend: Any, inputs: Any) -> None:
    path, wanted = HERE / name, json.loads((HERE / f"{name}.json").read_text())
    config = InferenceConfig(
        devices="cpu", backend=backend, precision="fp32", batch_shape="dynamic"
    )
    opened = open_backend(path, config, 1)
    for output, answers in evaluate(opened, inputs).items():
        np.testing.assert_allclose(answers, wanted[output], atol=2e-5)
    check_export(path, opened, inputs)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_network_of_a_board_of_schema_2(backend: str) -> None:
    path = HERE / "schema_2_tictactoe"
    meta = load_model(path, "tictactoe").meta
    assert (meta.schema, meta.num_steps) == (2, 101)
    board = BoardSpec(
        num_planes=3, height=3, width=3, num_actions=9, policy_layout="cells"
    )
    assert meta.signature == board.signature
    wanted = json.loads((HERE / "schema_2_tictactoe.json").read_text())
    planes = []
    for moves in wanted["positions"]:
        state = games.make("tictactoe").new_state()
        for action in moves:
            state.apply(action)
        planes.append(state.observation())
    answers_are_as_then(path.name, backend, {"planes": np.stack(planes)})


def test_it_plays_as_then() -> None:
    wanted = json.loads((HERE / "schema_2_tictactoe.json").read_text())
    player = tengen.load(HERE / "schema_2_tictactoe")
    found = [
        player.choose(moves, simulations=64, seed=0) for moves in wanted["positions"]
    ]
    assert found == wanted["moves"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_network_of_vectors_of_schema_2(backend: str) -> None:
    path = HERE / "schema_2_cartpole"
    meta = load_model(path, "CartPole-v1").meta
    assert meta.signature == Signature(
        inputs={"observation": TensorSpec(shape=(4,))},
        outputs={"policy": TensorSpec(shape=(2,)), "value": TensorSpec()},
    )
    wanted = json.loads((HERE / "schema_2_cartpole.json").read_text())
    rows = np.array(wanted["observations"], np.float32)
    answers_are_as_then(path.name, backend, {"observation": rows})
