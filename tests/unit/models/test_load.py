import dataclasses
import json
import random

import numpy as np
import pytest
from safetensors.numpy import load_file

from tengen.config import to_dict
from tengen.errors import RunError, UsageError
from tengen.evaluation.players import open_for_play
from tengen.inference import InferenceConfig, choose, open_backend
from tengen.inference.torch_backend import load_head
from tengen.models import (
    accept,
    load_model,
    next_number,
    reject,
    resolve_model,
)
from tengen.run import RunDirectory, file_sha256
from tests.refusals import refused
from tests.unit.experience.damage import damaged, reason
from tests.unit.models.conftest import signature_of


@pytest.fixture
def run(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    run.write_run({"config": {}})
    return run


def edit_meta(path, **changes):
    content = json.loads((path / "meta.json").read_text())
    (path / "meta.json").write_text(json.dumps({**content, **changes}))


def test_a_published_model_is_what_was_given(publish, features, config, random_weights):
    model = publish(7)
    assert model.path.name == "000007"
    assert (model.meta.signature, model.meta.net) == (
        signature_of(features, config),
        config,
    )
    assert (model.meta.task, model.meta.num_steps) == ("gomoku/5", 200)
    wanted = random_weights(features, config, 7)
    found = load_file(model.path / "weights.safetensors")
    assert found.keys() == wanted.keys()
    assert all(np.array_equal(found[name], wanted[name]) for name in wanted)


def test_a_model_of_schema_1_is_read(publish, features):
    model = publish(7)
    content = json.loads((model.path / "meta.json").read_text())
    del content["origin"], content["signature"]
    content["features"] = to_dict(features)
    (model.path / "meta.json").write_text(json.dumps({**content, "schema": 1}))
    assert load_model(model.path).meta == dataclasses.replace(model.meta, schema=1)


def test_a_model_without_a_graph_is_one_for_torch(publish):
    model = publish(7, exporter=None)
    names = {path.name for path in model.path.iterdir()}
    assert names == {"meta.json", "weights.safetensors"}
    assert model.meta.sha256.keys() == {"weights.safetensors"}
    assert load_model(model.path) == model
    config = InferenceConfig(
        devices="cpu", backend="torch", precision="fp32", batch_shape="dynamic"
    )
    assert open_backend(model.path, config, 1).signature == model.meta.signature
    assert open_for_play(model.path, 1, devices="cpu").name == "torch"
    planes = np.ones((20, 4, 5, 5), np.float32)
    chosen = choose(
        model.path, InferenceConfig(devices="cpu"), {"planes": planes}, 1
    ).config
    assert chosen.backend == "torch"


def test_a_model_without_a_graph_is_refused_by_openvino(publish):
    pytest.importorskip("openvino")
    path = publish(7, exporter=None).path
    config = InferenceConfig(
        devices="cpu", backend="openvino", precision="fp32", batch_shape="dynamic"
    )
    with refused(UsageError, "model.onnx", "inference.backend=torch"):
        open_backend(path, config, 1)


def test_a_graph_that_the_model_does_not_know_is_refused(publish):
    path = publish(7, exporter=None).path
    (path / "model.onnx").write_bytes((publish(6).path / "model.onnx").read_bytes())
    with refused(UsageError, "model.onnx", "sha256"):
        load_model(path)


def test_the_same_weights_make_the_same_bytes_once_each(publish, run):
    first, second = publish(3), publish(3, folder=run.candidates)
    assert first.meta == second.meta
    with refused(RunError, "exists"):
        publish(3)


def test_a_model_keeps_its_number(publish, run):
    assert next_number(run) == 0
    publish(0, folder=run.candidates)
    accept(run, 0)
    assert next_number(run) == 1
    publish(1, folder=run.candidates)
    reject(run, 1)
    assert next_number(run) == 2
    publish(2, folder=run.candidates)
    assert next_number(run) == 3
    assert accept(run, 2).path == run.path / "models" / "000002"
    assert run.models.numbers() == [0, 2]
    assert run.rejected.numbers() == [1]
    assert run.candidates.numbers() == []


def test_a_damaged_candidate_is_never_a_model(publish, run):
    candidate = publish(0, folder=run.candidates).path
    (candidate / "model.onnx").write_bytes(b"")
    with refused(RunError, "model.onnx"):
        accept(run, 0)
    assert run.models.numbers() == []
    assert run.candidates.numbers() == [0]


def test_a_foreign_model_is_refused(publish, run, features):
    model = publish(0, folder=run.models)
    task, wanted = model.meta.task, model.meta.signature
    assert load_model(model.path, task, wanted) == model
    with refused(UsageError, f"task {task}", "chess"):
        load_model(model.path, "chess")
    larger = dataclasses.replace(features, num_planes=features.num_planes + 1)
    with refused(UsageError, "num_planes 4"):
        load_model(model.path, task, signature_of(larger, model.meta.net))
    # The run's task decides, wherever its models were copied from.
    run.write_run({"config": {"task": "chess"}})
    for name in (run.path, f"{run.path}@0"):
        with refused(UsageError, task, "chess"):
            resolve_model(name)


def test_every_way_to_name_a_model(publish, run):
    for number in (0, 1):
        publish(number, folder=run.candidates)
        accept(run, number)
    old, new = run.models.entry(0), run.models.entry(1)
    assert resolve_model(str(run.path)).path == new
    assert resolve_model(f"{run.path}@0").path == old
    assert resolve_model(str(old)).path == old


@pytest.mark.parametrize(
    ("suffix", "message"),
    [
        ("", "has no published model yet"),
        ("@3", "does not exist; it has none"),
        ("/nothing", "must be a run directory"),
        ("@x", "must be a run directory"),
        ("@" + "9" * 100, "must be a run directory"),
        ("@\u0663", "must be a run directory"),
    ],
)
def test_no_such_model(run, suffix, message):
    with refused(UsageError, message):
        resolve_model(f"{run.path}{suffix}")


def test_a_number_out_of_range_and_a_folder_that_is_no_run(publish, run, tmp_path):
    publish(0, folder=run.candidates)
    accept(run, 0)
    with refused(UsageError, "@5)", "0 to 0"):
        resolve_model(f"{run.path}@5")
    with refused(UsageError, "run directory"):
        resolve_model(tmp_path)


@pytest.mark.parametrize("name", ["weights.safetensors", "model.onnx"])
def test_a_damaged_file_is_named(publish, name):
    path = publish().path
    whole = (path / name).read_bytes()
    flipped = bytes([whole[0] ^ 1]) + whole[1:]
    for changed in (whole[:-1], b"", flipped):
        (path / name).write_bytes(changed)
        with refused(UsageError, name):
            load_model(path)
    (path / name).unlink()
    with refused(UsageError, name):
        load_model(path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '"meta"', '{"schema": "1"}'])
def test_a_foreign_meta_is_refused(publish, text):
    path = publish().path
    (path / "meta.json").write_text(text)
    with refused(UsageError, "meta.json"):
        load_model(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 99}, "schema (99)"),
        ({"extra": 1}, "extra"),
        ({"num_steps": "many"}, "num_steps"),
        ({"net": {"kind": "resnet", "num_blocks": -1}}, "num_blocks"),
        ({"sha256": {}}, "sha256 of weights.safetensors"),
    ],
)
def test_a_wrong_meta_is_refused_by_field(publish, changes, message):
    path = publish().path
    edit_meta(path, **changes)
    with refused(UsageError, message):
        load_model(path)


@pytest.mark.parametrize("name", ["meta.json", "weights.safetensors"])
def test_damage_anywhere_is_one_line(publish, name):
    """Damage is a one-line error, even if the file's sha256 is correct."""
    path = publish(1).path
    whole = {file.name: file.read_bytes() for file in path.iterdir()}
    rng = random.Random(name)

    def use():
        load_model(path)
        load_head(path)

    use()
    reasons = []
    for _ in range(100):
        # Only the first 2,000 bytes, which describe the layout, are damaged.
        data = damaged(rng, whole[name][:2000]) + whole[name][2000:]
        (path / name).write_bytes(data)
        if name != "meta.json":
            sha256 = json.loads(whole["meta.json"])["sha256"]
            edit_meta(path, sha256={**sha256, name: file_sha256(path / name)})
        reasons.append(reason(use))
    assert sum(why is not None for why in reasons) > 50
