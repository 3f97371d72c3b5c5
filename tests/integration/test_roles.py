"""Standalone role processes: ends by signals, and messages."""

import json
import shutil
import signal
import sys

import pytest

from tengen.experience.games.writer import unfinished_games
from tengen.observe import read_events
from tengen.roles import RoleContext, make_role, read_config
from tengen.run import RunDirectory
from tests.faults.role_processes import RoleProcesses, make_run
from tests.integration.runs import run_command, start_command, wait_for

ENDLESS = 1_000_000


def command(name, run, *extra):
    words = [sys.executable, "-m", "tengen", name, str(run.path), *extra]
    return [*words, "--threads", "1", "--json"]


@pytest.fixture(scope="module")
def first_model(tmp_path_factory):
    """A run that contains only its initial model, which is random."""
    run = make_run(tmp_path_factory.mktemp("roles") / "run")
    for name in ("learn", "export", "gate"):
        role = make_role(name, read_config(run), run, RoleContext())
        role.turn()
        role.close()
    return run.path


@pytest.fixture
def run(tmp_path, first_model):
    return RunDirectory(shutil.copytree(first_model, tmp_path / "run"))


@pytest.fixture
def start():
    started = []

    def make(run, roles):
        started.append(RoleProcesses(run, roles))
        return started[-1]

    yield make
    for processes in started:
        processes.close()


def change(run, **actor):
    content = run.read_run()
    content["config"]["agent"]["actor"] |= actor
    run.write_run(content)


def turns(run, role):
    paths = [
        run.events_path(f"{role}-command", number)
        for number in run.incarnations(f"{role}-command")
    ]
    return [e for path in paths for e in read_events(path) if e["kind"] == "turn"]


def test_a_signal_keeps_the_games_in_flight(run):
    # Enough concurrent games that some are in progress at any instant.
    change(run, games_per_generation=ENDLESS, num_slots=64)
    writer = run.experience / "selfplay-0"
    for num_begun, number in ((1, signal.SIGINT), (2, signal.SIGTERM)):
        child = start_command(command("selfplay", run))

        def has_played(num_begun=num_begun):
            """Returns whether this process, in its own folder, has finished games."""
            journals = list(writer.glob("*/*.journal"))
            sizes = [path.stat().st_size for path in journals]
            return len(sizes) == num_begun and min(sizes) > 4096

        wait_for(has_played)
        child.send_signal(number)
        output, errors = child.communicate(timeout=900)
        assert (child.returncode, errors) == (130, "")
        report = json.loads(output.splitlines()[-1])
        assert report["last"]["stopped"]
        kept = len(unfinished_games(writer, 1))
        assert kept > 0
    assert [turn["num_gone_on_with"] > 0 for turn in turns(run, "selfplay")] == [
        False,
        True,
    ]
    assert turns(run, "selfplay")[1]["num_recovered"] > 0


def test_so_many_games_in_whole_generations(run):
    change(run, games_per_generation=8, full_simulations=2)
    done = run_command(command("selfplay", run, "--games", "20"))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert (report["num_games"], report["num_turns"]) == (24, 3)
    assert len(list(run.experience.glob("*/*/[0-9]*.npz"))) == 3
    done = run_command(command("selfplay", run, "--games", "0"))
    assert done.returncode == 2
    assert "games (0) must be" in done.stderr
    done = run_command(command("gate", run, "--games", "5"))
    assert "option (--games) is not known" in done.stderr


@pytest.mark.parametrize(
    ("role", "gate", "name"),
    [
        ("selfplay", None, "weights.safetensors"),
        ("selfplay", None, "meta.json"),
        ("gate", "accept_all", "weights.safetensors"),
        ("gate", "match", "meta.json"),
    ],
)
def test_a_damaged_model_fails_its_role_and_stays(run, role, gate, name):
    folder = run.models if gate is None else run.candidates
    number = folder.latest()
    if number is None:
        number = 1
        shutil.copytree(run.models.entry(0), run.candidates.entry(number))
    if gate is not None:
        content = run.read_run()
        content["config"]["agent"]["gate"] = {"kind": gate}
        run.write_run(content)
    path = folder.entry(number) / name
    path.write_bytes(path.read_bytes()[:-9])
    done = run_command([*command(role, run), "--once"])
    assert done.returncode == 1
    assert done.stderr.startswith("tengen: ")
    assert done.stderr.count("\n") == 1
    assert f"({path})" in done.stderr
    assert folder.latest() == number


def test_a_newer_model_is_gone_on_with(run, start):
    """The generation never ends, so only games in progress can use the new model."""
    change(run, games_per_generation=ENDLESS, full_simulations=50)
    processes = start(run, ("selfplay",))
    journals = run.experience / "selfplay-0"
    wait_for(lambda: any(p.stat().st_size > 4096 for p in journals.glob("*/*.journal")))
    # Publishes the same model under the next number.
    copied = run.path / "candidates" / "copied"
    shutil.copytree(run.models.entry(0), copied)
    copied.rename(run.models.entry(1))
    log = RunDirectory(run.path).incarnations("selfplay-command")[-1]
    events = run.events_path("selfplay-command", log)

    def is_on_it():
        return any(
            event["kind"] == "state" and event["state"] == "continues with model 1"
            for event in read_events(events)
        )

    wait_for(is_on_it)
    assert processes.end((signal.SIGTERM,)) == [130]
    (turn,) = turns(run, "selfplay")
    assert (turn["models"], turn["model"]) == ([0, 1], 1)
    assert turn["stopped"]
