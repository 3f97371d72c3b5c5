"""Recorded functions and learner steps, compared with the same in Python."""

import copy
import dataclasses
import weakref

import numpy as np
import pytest
import torch
from torch.nn import functional

from tengen import envs
from tengen._core import CoreError
from tengen.agents import Agent
from tengen.errors import RunError
from tengen.games import allow
from tengen.learners import Learner, operations
from tengen.learners.recorded import Recorded
from tengen.learners.shards import preferred_dtype
from tengen.nets.modules.standard import Standard
from tengen.store import Batch
from tests.refusals import refused

NUM_ROWS = 24


class MadeUpItems:
    """Items of an agent with random columns; batch i depends only on i."""

    def __init__(self, agent, spec, num_steps):
        self.columns = agent.columns(spec)
        self.actions = spec.actions
        self.num_steps = num_steps
        self.num_batches = 0
        self.priorities = []
        self.reward = 1.0

    def sample(self, num_rows):
        rng = np.random.default_rng(self.num_batches)
        self.num_batches += 1
        shape = (num_rows, self.num_steps)
        columns = {"model_version": np.full(shape, 1 << 40)}
        for name, spec in self.columns.items():
            whole = (*shape, *spec.shape)
            numbers = rng.normal(size=whole)
            if name in ("is_reset", "terminated", "truncated"):
                numbers = rng.random(whole) < 0.1
            elif name == "action" and self.actions.is_discrete:
                numbers = rng.integers(0, self.actions.num_choices[0], whole)
            elif name == "is_present":
                numbers = rng.random(whole) < 0.8
            elif name == "agent_id":
                ids = np.eye(whole[-1])
                if len(whole) == 3:  # an item has one agent, not all
                    ids = ids[np.arange(num_rows) % len(ids), None]
                numbers = np.broadcast_to(ids, whole)
            columns[name] = numbers.astype(spec.dtype)
        columns["is_reset"][:, 0] = 0
        columns["reward"] *= self.reward
        return Batch(
            self.num_batches,
            np.arange(num_rows),
            np.linspace(0.001, 0.01, num_rows),
            columns,
            1_000,
            lambda lease, priorities: self.priorities.append(priorities),
        )


def learner_of(
    kind,
    task,
    *,
    is_recordable=True,
    inherits=False,
    optimizer=None,
    net=None,
    num_together=1,
    **fields,
):
    """Returns a small learner of an agent, and its items."""
    torch.manual_seed(3)
    allow(task)
    spec = envs.env_spec(task)
    agent = Agent.of_kind(kind, "a test")().for_environment(spec)
    few = {"target_period", "num_epochs"} & {f.name for f in dataclasses.fields(agent)}
    agent = dataclasses.replace(agent, **dict.fromkeys(few, 2))
    net = dataclasses.replace(
        agent.default_net(spec), **{"num_units": 16, **(net or {})}
    )
    config = agent.default_learner(spec)
    settings = {"average_decay": 0.0, **(optimizer or {})}
    config = dataclasses.replace(
        config,
        batch_size=NUM_ROWS,
        optimizer=dataclasses.replace(config.optimizer, **settings),
        **fields,
    )
    net = net.build(agent.signature(task))
    update = agent.make_update(task, net, agent.default_store(spec))
    if inherits:
        update.__class__ = type("Own", (type(update),), {})
    if not is_recordable:
        update.is_recordable = False
    items = MadeUpItems(agent, spec, agent.layout(net.signature.state).num_steps)
    return Learner(config, net, update, items, num_together=num_together), items


TEAMS = "tests.team_environments"
AGENTS = [
    ("sac", "Pendulum-v1"),
    ("sac", "CartPole-v1"),
    ("masac", f"{TEAMS}:Moving"),
    ("masac", f"{TEAMS}:MaskedTeam"),
    ("ppo", "Pendulum-v1"),
    ("ppo", "CartPole-v1"),
    ("pqn", "CartPole-v1"),
    ("dqn", "CartPole-v1"),
    ("rnd", "CartPole-v1"),
    ("mappo", f"{TEAMS}:Signals"),
]


SETTINGS = [
    {"average_decay": 0.0},
    {"average_decay": 0.9},
    # The learning rate differs in each step, and each gradient is clipped.
    {"num_warmup_steps": 3, "cooldown": 0.5, "weight_decay": 30.0},
    {"max_grad_norm": 0.01},
]
# Each agent has the first settings and one of the others.
CASES = [
    (*agent, SETTINGS[place], {})
    for number, agent in enumerate(AGENTS)
    for place in (0, 1 + number % 3)
]
SEPARATE = {"shares_parameters": False}
CASES += [(kind, f"{TEAMS}:Signals", {}, SEPARATE) for kind in ("mappo", "masac")]


@pytest.mark.parametrize(("kind", "task", "optimizer", "net"), CASES, ids=str)
def test_recorded_steps_are_those_of_the_agent(kind, task, optimizer, net):
    found = []
    for is_recordable in (True, False):
        learner, items = learner_of(
            kind, task, is_recordable=is_recordable, optimizer=optimizer, net=net
        )
        with learner:
            metrics = []
            for remaining in (1.0, 0.7, 0.4, 0.1):
                learner.remaining = remaining
                metrics.append(learner.step())
            assert learner.is_recorded == is_recordable
        found.append((metrics, items.priorities, learner.state().tensors))
    (metrics, priorities, tensors), (expected, *others) = found
    for one, other in zip(metrics, expected, strict=True):
        assert one.keys() == other.keys()
        for name in one.keys() - {"train_s", "sample_wait_s"}:
            assert one[name] == pytest.approx(other[name], rel=1e-3, abs=1e-4)
    for one, other in zip(priorities, others[0], strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)
    for name, tensor in tensors.items():
        # AdamW's first steps hardly depend on the gradient's size, so rounding of a
        # gradient near 0 changes a weight by up to the learning rate.
        torch.testing.assert_close(tensor, others[1][name], rtol=1e-2, atol=3e-4)


@pytest.mark.parametrize(("kind", "task"), AGENTS)
def test_a_resumed_learner_makes_the_same_steps(kind, task):
    settings = {"optimizer": {"average_decay": 0.99}} if kind == "sac" else {}
    learner, items = learner_of(kind, task, **settings)
    with learner:
        for _ in learner.steps(2):
            pass
        state = learner.state()
        tensors = {name: tensor.clone() for name, tensor in state.tensors.items()}
        for _ in learner.steps(3):
            pass
        expected = learner.state().tensors
    # Batches that are sampled together make the same steps.
    num_together = 2 if "sac" in kind else 1
    other, items = learner_of(kind, task, num_together=num_together, **settings)
    with other:
        # Programs recorded before the state was loaded must not write old moments.
        other.step()
        other.load_state(state._replace(tensors=tensors))
        items.num_batches = 2
        for _ in other.steps(3):
            pass
        found = other.state().tensors
    assert found.keys() == expected.keys()
    for name, tensor in found.items():
        assert torch.equal(tensor, expected[name]), name


def test_a_gradient_that_is_not_finite_ends_the_run_and_changes_no_weight():
    learner, items = learner_of("sac", "Pendulum-v1")
    with learner:
        learner.step()
        items.reward = np.inf
        before = [weight.clone() for weight in learner.net.parameters()]
        with refused(RunError, "grad_norm"):
            learner.step()
        for weight, old in zip(learner.net.parameters(), before, strict=True):
            assert torch.equal(weight, old)


@pytest.mark.parametrize(
    ("fields", "is_recorded"),
    [
        ({"precision": "bfloat16", "net": {"num_units": 128}}, False),
        ({"num_shards": 2}, False),
        ({"net": {"num_units": 1024}}, False),
        ({"net": {"layer_norm": True}}, True),
        ({"net": {"standardizes": True}}, False),
        ({"inherits": True}, False),
    ],
    ids=str,
)
def test_which_learners_record_their_steps(fields, is_recorded):
    learner, _ = learner_of("sac", "Pendulum-v1", **fields)
    with learner:
        assert learner.step()["grad_norm"] > 0
        assert learner.is_recorded == is_recorded


def test_automatic_precision_is_lower_where_steps_are_not_recorded():
    machine = preferred_dtype("auto", torch.device("cpu"))
    for fields, dtype in [
        ({}, torch.float32),
        ({"net": {"standardizes": True}}, machine),
        ({"inherits": True}, machine),
    ]:
        learner, _ = learner_of("sac", "Pendulum-v1", **fields)
        learner.close()
        assert learner.dtype == dtype


def test_a_step_with_another_meaning_is_not_used(monkeypatch):
    # The counters of steps change by far more than the weights.
    monkeypatch.setitem(operations.FUNCTIONS, "_fused_adamw", lambda to, call: None)
    learner, _ = learner_of("sac", "Pendulum-v1")
    with learner:
        before = [weight.clone() for weight in learner.net.parameters()]
        learner.step()
        assert not learner.is_recorded
        for weight, old in zip(learner.net.parameters(), before, strict=True):
            assert not torch.equal(weight, old)


def filled_by_numpy(y):
    out = torch.empty(4, 5)
    out.numpy()[:] = y.detach().numpy().sum(0)
    return out


def asserted(x):
    getattr(torch, "_assert_" + "async")((x == x).all())
    return x


X = torch.linspace(-3.0, 3.0, 60).reshape(3, 4, 5)
Y = torch.linspace(2.0, -1.0, 60).reshape(5, 4, 3).transpose(0, 2)
COUNT = torch.arange(12).reshape(3, 4)
PLACE, FIRST, ROW = COUNT[..., None] % 5, COUNT[0] % 3, COUNT[1] % 4
FUNCTIONS = {
    "arithmetic": lambda x, y: 2 - (x * y + 3 * x) / (y.abs() + 1),
    "alpha": lambda x, y: torch.add(x, y, alpha=2).sub(y, alpha=0.5),
    "in place": lambda x, y: x.clone().add_(y).mul_(x).clamp_(min=-1.0).neg(),
    "exponentials": lambda x, y: x.exp().log() + torch.expm1(y) + x.tanh() * y.relu(),
    "roots": lambda x, y: (x.square() + 1).sqrt().reciprocal() + y.pow(3),
    "bounds": lambda x, y: x.clamp(-1, 1) + y.clamp(max=0.5) + torch.minimum(x, y),
    "comparisons": lambda x, y: (x > y).logical_or((x != 1).logical_and(~(y <= 0))),
    "bits": lambda x, y: ((x > y) & (x < 2) | (y > 1)) * x,
    "selections": lambda x, y: torch.where(x > 0, x, y).masked_fill(y > 1, 7.0),
    "sums": lambda x, y: x.sum() + y.sum(0) * x.mean((0, 1)) + y.mean(-1, True),
    "norms": lambda x, y: torch.linalg.vector_norm(x) * y,
    "views": lambda x, y: x[1:, ::2].transpose(0, 1) * y[:2, 0, None],
    "joins": lambda x, y: torch.cat([x, torch.stack([x[0], y[1]])]).roll(1, 0),
    "extremes": lambda x, y: x.max(1).values + y.min(1).values * x.argmax(1),
    "gathers": lambda x, y: x.gather(2, PLACE) * y.detach()[FIRST, ROW][None],
    "scatters": lambda x, y: torch.zeros(3, 4, 5).scatter_add(2, PLACE, x[..., :1]),
    "puts": lambda x, y: x.detach().clone().index_put_((FIRST, ROW), y[0, 0]),
    "softmax": lambda x, y: x.log_softmax(-1) * y,
    "products": lambda x, y: torch.addmm(y[0, 0], x[0], y[:, 0].T @ x[:, 0]),
    "losses": lambda x, y: functional.huber_loss(x, y, reduction="none", delta=0.7)
    + functional.softplus(x * 9),
    "norm": lambda x, y: functional.group_norm(x[0], 1, y[0, 0], y[1, 1]) * 2,
    "doubles": lambda x, y: ((x.double() / 3).clamp(min=0.1).sqrt() * x).float() * y,
    "integers": lambda x, y: (COUNT + 1) * (x[..., 0] > 0),
    "other dtypes": lambda x, y: x.bfloat16() + y.half(),
    "unknown": lambda x, y: x.sort(-1).values * torch.fft.rfft(y).abs()[..., :1],
    "a value": lambda x, y: x * y.max().item(),
    "lists": lambda x, y: sum(getattr(torch, "_foreach_" + "mul")([x, y], 2.0)) * x,
    "extreme": lambda x, y: x / y.max(),
    "empty": lambda x, y: torch.cat([torch.empty(0), x]),
    "numpy": lambda x, y: x + torch.from_numpy(y.detach().numpy() * 2),
    "numpy in place": lambda x, y: x * filled_by_numpy(y),
    "sum in numpy": lambda x, y: x * torch.tensor(float(y.detach().numpy().sum())),
    "number": lambda x, y: x * torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]),
    "changed number": lambda x, y: torch.tensor([1.0, 2.0]).mul_(y.detach()[0, 0, :2]),
    "bytes": lambda x, y: (x.detach() > 0).byte() * 200 + (y > 0).byte() * 100,
    "large integers": lambda x, y: (x > 0).long() + 2**53,
    "assertion": lambda x, y: asserted(x) * y,
}  # fmt: skip
EAGER = "integers|other dtypes|unknown|a value|extreme|empty|numpy|numpy in place|"
EAGER += "sum in numpy|changed number|bytes|large integers|assertion"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_operations_are_those_of_torch(name):
    def function(given):
        x = given["x"].clone().requires_grad_()
        y = given["y"].clone().requires_grad_()
        out = FUNCTIONS[name](x, y)
        if not out.requires_grad:
            return {"out": out.clone()}
        slopes = torch.autograd.grad(
            out.sum() + (out * out).mean(), [x, y], materialize_grads=True
        )
        return {"out": out.detach().clone(), "x": slopes[0] + 0, "y": slopes[1] + 0}

    recorded = Recorded()
    for shift in (0.0, 0.3):
        given = {"x": X + shift, "y": (Y - shift).contiguous()}
        for key, expected in function(given).items():
            found = recorded(function, given)[key]
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert recorded.is_recorded == (name not in EAGER.split("|"))


def test_each_shape_has_a_program_and_other_memory_changes_once():
    total = torch.zeros(3)

    def function(given):
        total.add_(given["x"].sum(0))
        return {"out": given["x"] * 2}

    recorded = Recorded()
    for num_rows in (4, 2, 4, 1):
        out = recorded(function, {"x": torch.ones(num_rows, 3)})["out"]
        assert torch.equal(out, torch.full((num_rows, 3), 2.0))
    assert recorded.is_recorded
    assert torch.equal(total, torch.full((3,), 11.0))


def test_caches_of_changed_tensors_are_renewed():
    standard = Standard(2)
    rows = torch.tensor([[1.0, 5.0], [3.0, -2.0]])
    standard.train()(rows)
    standard.eval()

    def function(given):
        standard.total.add_(given["x"].double())
        return {"out": standard(rows) * 1}

    recorded = Recorded()
    for _ in range(3):
        standard(rows)  # fills the cache
        out = recorded(function, {"x": torch.ones(2)})["out"]
        expected = copy.deepcopy(standard)(rows)  # a copy has no cache
        torch.testing.assert_close(standard(rows), expected)
        torch.testing.assert_close(out, expected)
    assert recorded.is_recorded


def test_random_numbers_are_drawn_by_torch():
    torch.manual_seed(5)

    def function(given):
        return {"out": given["x"] + torch.rand(3)}

    recorded = Recorded()
    outs = [recorded(function, {"x": torch.zeros(3)})["out"] for _ in range(2)]
    assert not torch.equal(*outs)
    assert not recorded.is_recorded


def test_an_index_out_of_range_is_refused():
    def function(given):
        return {"out": X[0].gather(1, given["index"]) * 1}

    recorded = Recorded()
    recorded(function, {"index": torch.zeros(4, 1, dtype=torch.int64)})
    assert recorded.is_recorded
    with refused(CoreError, "index (5)"):
        recorded(function, {"index": torch.full((4, 1), 5)})


def test_a_first_batch_with_nan_does_not_decide_how_later_batches_are_computed():
    def function(given):
        return {"out": (given["x"] * 0.1).tanh() / given["x"].sum()}

    outs = []
    for first in (torch.tensor([1.0, -1.0]), torch.tensor([np.nan, 2.0])):
        recorded = Recorded()
        recorded(function, {"x": first})
        assert recorded.is_recorded
        outs.append(recorded(function, {"x": torch.tensor([0.3, 0.7])})["out"])
    assert torch.equal(*outs)


def test_many_shapes_are_not_recorded_again_and_again():
    num_calls = 0

    def function(given):
        nonlocal num_calls
        num_calls += 1
        return {"out": given["x"] * 2}

    recorded = Recorded()
    for _ in range(4):
        num_calls = 0
        for num_rows in range(1, 66):
            out = recorded(function, {"x": torch.ones(num_rows)})["out"]
            assert torch.equal(out, torch.full((num_rows,), 2.0))
    assert num_calls == 1


def test_programs_share_their_memory_and_keep_no_function():
    def function(given):
        return {"out": given["x"] * 2}

    recorded = Recorded()
    places = {
        recorded(function, {"x": torch.ones(num_rows)})["out"].data_ptr()
        for num_rows in (1000, 10, 100)
    }
    assert len(places) == 1
    kept = weakref.ref(function)
    del function
    assert kept() is None
