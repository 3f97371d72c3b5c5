"""A network grows after a number of games, at the same game after any interruption."""

import json

import pytest

from tengen.learners.checkpoint import read_extra
from tengen.run import RunDirectory
from tests.integration.runs import SMALL, run_command, sealed, train_command, weights

# test_determinism.py has a run that grows, in two calls.
pytestmark = pytest.mark.soak

GROWS = (
    *SMALL,
    'agent.stages=[{"games": 40, "net": '
    '{"kind": "resnet", "num_blocks": 2, "num_channels": 24}}]',
)


def channels(out):
    """Returns the widths of all published models, in order."""
    paths = sorted(out.glob("models/[0-9]*/meta.json"))
    return [json.loads(path.read_text())["net"]["num_channels"] for path in paths]


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    out = tmp_path_factory.mktemp("reference") / "run"
    done = run_command(train_command(out, 72, settings=GROWS))
    assert done.returncode == 0, done.stderr
    return out


def test_it_grows_after_so_many_games(reference):
    # Models after 0, 24, 48 and 72 games; the larger network starts after 40 games.
    assert channels(reference) == [16, 16, 24, 24]
    checkpoints = RunDirectory.open(reference).checkpoints
    assert read_extra(checkpoints.entry(3))["grown_at"] == [2]


@pytest.mark.parametrize(
    ("fault", "left"),
    [
        # The first games are durable, but each process that seals them dies, so the
        # call fails.
        ("seal.gathered:1:experience/selfplay-0", 48),
        # The turn that grows the network dies in its checkpoint, and is repeated.
        ("publish.written:3:checkpoints", 0),
    ],
)
def test_it_grows_at_the_same_games_after_a_kill(reference, tmp_path, fault, left):
    out = tmp_path / "run"
    done = run_command(train_command(out, 72, settings=GROWS), fault=fault)
    assert "died" in done.stdout + done.stderr
    if left:
        assert done.returncode == 1
        assert not sealed(out)
        done = run_command(train_command(out, left, settings=GROWS))
    assert done.returncode == 0, done.stderr
    assert sealed(out) == sealed(reference)
    assert weights(out) == weights(reference)


def test_a_further_call_keeps_the_network(reference, tmp_path):
    out = tmp_path / "run"
    for games in (48, 48):
        done = run_command(train_command(out, games, settings=GROWS))
        assert done.returncode == 0, done.stderr
    # The network grew after 48 games, and only once.
    assert channels(out) == [16, 16, 24, 24, 24]
