"""Checkpoints: exact resume, and refusal of everything else."""

import json

import pytest
import torch

from tengen.config import to_dict
from tengen.errors import RunError, UsageError
from tengen.learners import (
    AdamWConfig,
    SgdConfig,
    checkpoint,
    load_checkpoint,
    save_checkpoint,
)
from tengen.run import NumberedFolder
from tests.refusals import refused
from tests.unit.learners.learner_fakes import FakeTable


@pytest.fixture
def folder(tmp_path):
    return NumberedFolder(tmp_path)


def assert_same(a, b):
    left, right = a.state(), b.state()
    assert left.num_steps == right.num_steps
    assert left.num_optimizer_steps == right.num_optimizer_steps
    assert left.num_samples == right.num_samples
    assert left.tensors.keys() == right.tensors.keys()
    for name, tensor in left.tensors.items():
        assert torch.equal(tensor, right.tensors[name]), name


@pytest.mark.parametrize("kind", [SgdConfig, AdamWConfig])
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_twenty_steps_are_ten_saved_loaded_and_ten(
    make_learner, folder, kind, precision
):
    fields = {"optimizer": kind(), "precision": precision}
    whole = make_learner(**fields)
    list(whole.steps(20))
    table = FakeTable()
    first = make_learner(table=table, **fields)
    list(first.steps(10))
    path = save_checkpoint(folder, 1, first, {"num_drawn": table.num_drawn})

    table = FakeTable()
    second = make_learner(table=table, **fields)
    list(second.steps(3))  # a used learner is overwritten entirely
    table.num_drawn = load_checkpoint(path, second)["num_drawn"]
    assert_same(first, second)
    metrics = list(second.steps(10))
    assert_same(whole, second)
    assert metrics[-1]["learning_rate"] == pytest.approx(20 / 50 * kind().learning_rate)


def test_a_checkpoint_after_growth_resumes_within_the_new_warm_up(make_learner, folder):
    whole = make_learner()
    whole.load_state(whole.state()._replace(num_steps=500))
    list(whole.steps(2))
    path = save_checkpoint(folder, 1, whole)
    resumed = make_learner(table=FakeTable(num_drawn=2))
    load_checkpoint(path, resumed)
    rates = [learner.step()["learning_rate"] for learner in (whole, resumed)]
    assert rates == [pytest.approx(3 / 50 * SgdConfig().learning_rate)] * 2
    assert_same(whole, resumed)


def test_the_generator_is_restored(make_learner, folder):
    learner = make_learner()
    path = save_checkpoint(folder, 1, learner)
    expected = torch.rand(3)
    torch.rand(5)
    assert load_checkpoint(path, learner) is None
    assert torch.equal(torch.rand(3), expected)


def test_the_last_ones_are_kept(make_learner, folder):
    learner = make_learner()
    for number in range(1, 6):
        save_checkpoint(folder, number, learner)
    assert folder.numbers() == [3, 4, 5]
    with refused(RunError, "000005"):
        save_checkpoint(folder, 5, learner)


@pytest.fixture
def saved(make_learner, folder):
    learner = make_learner()
    list(learner.steps(2))
    return save_checkpoint(folder, 2, learner)


def refuse(path, learner, error, *named):
    """Asserts that ``path`` is refused by name and the learner stays as it was."""
    before = {name: t.clone() for name, t in learner.state().tensors.items()}
    with refused(error, *named) as caught:
        load_checkpoint(path, learner)
    assert str(path) in str(caught.value)
    assert "; " in str(caught.value)
    for name, tensor in learner.state().tensors.items():
        assert torch.equal(tensor, before[name])


@pytest.mark.parametrize("part", [0.0, 0.01, 0.5, 0.999])
@pytest.mark.parametrize("name", ["state.safetensors", "state.json"])
def test_truncated_files_are_refused(make_learner, saved, name, part):
    data = (saved / name).read_bytes()
    (saved / name).write_bytes(data[: int(len(data) * part)])
    if name == "state.json" and part == 0.999:
        (saved / name).write_bytes(data.rstrip()[:-1])
    refuse(saved, make_learner(), RunError)


def test_a_flipped_bit_is_refused(make_learner, saved):
    path = saved / "state.safetensors"
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(bytes(data))
    refuse(saved, make_learner(), RunError)


def test_absent_files_are_refused(make_learner, saved):
    (saved / "state.safetensors").unlink()
    refuse(saved, make_learner(), RunError)
    refuse(saved / "nowhere", make_learner(), RunError)


def edit(path, **changes):
    content = json.loads((path / "state.json").read_text())
    (path / "state.json").write_text(json.dumps({**content, **changes}))


@pytest.mark.parametrize(
    "changes",
    [
        {"num_steps": 3},
        {"net": None},
        {"sha256": 5},
        {"json_sha256": None},
        {"extra": {}},
        {"more": 1},
    ],
)
def test_changed_json_is_refused(make_learner, saved, changes):
    edit(saved, **changes)
    refuse(saved, make_learner(), RunError)


def test_foreign_json_is_refused(make_learner, saved):
    (saved / "state.json").write_text("[1, 2]")
    refuse(saved, make_learner(), RunError)


@pytest.mark.parametrize("schema", [4, 7])
def test_another_schema_is_refused(make_learner, saved, schema):
    edit(saved, schema=schema)
    refuse(saved, make_learner(), UsageError, f"schema ({schema})")


def test_a_checkpoint_of_schema_5_is_read(make_learner, saved):
    """It has the features of a board where there is a signature now."""
    content = json.loads((saved / "state.json").read_text())
    del content["json_sha256"]
    features = content.pop("signature")["board"]
    old = {**content, "schema": 5, "features": features}

    checkpoint.write_checkpoint_json(saved, old)
    learner, same = make_learner(), make_learner()
    list(same.steps(2))
    load_checkpoint(saved, learner)
    assert_same(learner, same)
    assert checkpoint.read_model(saved).signature == learner.net.signature
    other = {**old, "features": {**features, "num_planes": 4}}
    checkpoint.write_checkpoint_json(saved, other)
    refuse(saved, learner, UsageError, "signature (")


def test_a_network_from_before_a_field_has_its_default(make_learner, saved):
    content = json.loads((saved / "state.json").read_text())
    assert content["net"].pop("lead") is False
    del content["json_sha256"]
    checkpoint.write_checkpoint_json(saved, content)
    learner = make_learner()
    load_checkpoint(saved, learner)
    assert learner.num_steps == 2
    assert checkpoint.read_model(saved).net == learner.net.config
    content["net"]["later"] = 1
    checkpoint.write_checkpoint_json(saved, content)
    refuse(saved, learner, UsageError, "net.later (1)")


def test_another_network_or_optimizer_is_refused(make_learner, saved):
    refuse(saved, make_learner(num_channels=16), UsageError, "net (")
    refuse(saved, make_learner(optimizer=AdamWConfig()), UsageError, "optimizer (")


def test_tensors_of_another_learner_are_refused(make_learner, folder):
    learner = make_learner()
    path = save_checkpoint(folder, 1, make_learner(num_channels=16))
    content = checkpoint.read_checkpoint_json(path)
    content["net"] = to_dict(learner.net.config)
    checkpoint.write_checkpoint_json(path, content)
    with refused(RunError, "[16"):
        load_checkpoint(path, learner)
