"""The layout of a run directory, and the counts of its actors."""

import dataclasses
import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tengen.errors import RunError, UsageError
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.run import SCHEMA, RunDirectory
from tengen.run.actor_counts import ActorCounts, read_actor_counts
from tengen.run.layout import spread
from tengen.run.machine import code_text, source_sha256
from tests.refusals import refused

HOLD = (
    "import sys, time\n"
    "from tengen.run import RunDirectory\n"
    "lock = RunDirectory(sys.argv[1]).lock('train')\n"
    "print('held', flush=True)\n"
    "time.sleep(60)\n"
)


@pytest.fixture
def run(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    run.write_run({"config": {"task": "go/9"}})
    return run


def test_create_then_resume(tmp_path):
    path = tmp_path / "deep" / "run"
    run = RunDirectory.create_or_resume(path)
    assert run.is_new
    run.write_run({"config": {"seed": 3}})
    again = RunDirectory.create_or_resume(path)
    assert not again.is_new
    assert again.read_run() == {"schema": SCHEMA, "config": {"seed": 3}}
    assert RunDirectory.open(path).read_run()["config"] == {"seed": 3}


def test_a_creation_killed_early_is_taken_up(tmp_path):
    first = RunDirectory.create_or_resume(tmp_path)
    (tmp_path / f".tmp-{os.uname().nodename}-1-00000000-ffff-run.json").touch()
    assert RunDirectory.create_or_resume(tmp_path).is_new
    assert first.is_new


def test_what_is_no_run_is_refused(tmp_path):
    (tmp_path / "thesis.tex").touch()
    for start, path, named in (
        (RunDirectory.create_or_resume, tmp_path, "thesis.tex"),
        (RunDirectory.create_or_resume, tmp_path / "thesis.tex", "directory"),
        (RunDirectory.open, tmp_path / "absent", "run directory"),
    ):
        with refused(UsageError, named):
            start(path)
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_newer_schema_is_refused_by_number(run):
    (run.path / "run.json").write_text('{"schema": 7}')
    for start in (RunDirectory.open, RunDirectory.create_or_resume):
        with refused(UsageError, "schema (7)"):
            start(run.path)


@pytest.mark.parametrize(
    "text",
    ["", '{"schema": 1, "conf', "[]", "3", "{}", '{"schema": "1"}', "[" * 100_000],
)
def test_damaged_run_json_is_one_clear_line(run, text):
    (run.path / "run.json").write_text(text)
    with refused(RunError, "damaged") as error:
        RunDirectory.open(run.path)
    assert "\n" not in str(error.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_place(tmp_path):
    tmp_path.chmod(0o500)
    with refused(RunError, "denied"):
        RunDirectory.create_or_resume(tmp_path / "run")


def test_models_are_listed_by_number_not_time(run):
    for number in (10, 2, 7):
        run.models.publish(number, lambda folder: (folder / "a").touch())
    for name in (".tmp-x", "notes", "3", "0000011"):
        (run.models.path / name).mkdir()
    assert run.models.numbers() == [2, 7, 10]
    assert run.models.latest() == 10
    assert run.models.entry(10) == run.path / "models" / "000010"
    assert run.candidates.latest() is None


def test_old_numbers_are_retired(run):
    for number in (9, 10, 2, 7):
        run.models.publish(number, lambda folder: (folder / "a").touch())
    run.models.retire(2)
    assert run.models.numbers() == [9, 10]
    run.models.retire(2)
    assert run.models.numbers() == [9, 10]


def test_some_old_numbers_are_kept_about_evenly_spaced(run):
    for number in range(60):
        run.models.publish(number, lambda folder: (folder / "a").touch())
        run.models.retire(4, 5)
    numbers = run.models.numbers()
    assert numbers == [0, 8, 19, 36, 52, 56, 57, 58, 59]
    run.models.retire(4)
    assert run.models.numbers() == [56, 57, 58, 59]
    assert spread(range(9), 3) == [0, 4, 8]
    assert spread([7], 3) == spread([7], 1) == [7]


def test_second_writer_is_refused_and_told_who(run):
    with run.lock("train"):
        child = subprocess.run(
            [sys.executable, "-c", HOLD, str(run.path)], capture_output=True, text=True
        )
    assert child.returncode == 1
    assert f"folder ({run.path}) is in use by process {os.getpid()} on" in child.stderr


def test_lock_dies_with_its_process(run):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run.path)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "held\n"
    holder = run.lock_holder("train")
    assert holder.startswith(f"{child.pid} on ")
    with refused(UsageError, f"process {child.pid}"):
        run.lock("train")
    child.kill()
    child.communicate()
    run.lock("train").release()
    assert run.lock_holder("train") is None


def test_a_lock_that_a_dead_host_left_is_free(run):
    """Its words tell nobody anything: who holds it is for the kernel to say."""
    (run.path / "locks" / "train").write_text("4711 on elsewhere\n")
    assert run.lock_holder("train") is None
    with run.lock("train"):
        assert run.lock_holder("train") == f"{os.getpid()} on {os.uname().nodename}"
        with run.lock("learn"):
            assert run.lock_holder("gate") is None


def test_a_lock_may_be_waited_for(run):
    order = []
    first = run.lock("generation")

    def second():
        with run.lock("generation", wait=True):
            order.append("second")

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(second)
        order.append("first")
        first.release()
        waiting.result()
    assert order == ["first", "second"]


def test_who_looks_at_a_lock_keeps_nobody_out(run):
    run.lock("train").release()
    descriptor = os.open(run.path / "locks" / "train", os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    with ThreadPoolExecutor(1) as pool:
        taking = pool.submit(run.lock, "train")
        # On a busy machine whoever looks may be stopped in the middle, for long.
        time.sleep(0.5)
        assert not taking.done()
        os.close(descriptor)
        taking.result().release()


def test_incarnations_are_never_given_twice(run):
    with ThreadPoolExecutor(8) as pool:
        numbers = list(pool.map(lambda _: run.new_incarnation("selfplay"), range(40)))
    assert sorted(numbers) == list(range(1, 41))
    assert run.new_incarnation("learn") == 1
    assert run.incarnations("selfplay") == list(range(1, 41))


def test_incarnations_go_on_where_event_files_were_lost(run):
    for folder in ("selfplay-0/3", "selfplay-7/12", "selfplay-7/x", "unrolls/5"):
        (run.experience / folder).mkdir(parents=True)
    assert run.new_incarnation("selfplay") == 13
    assert run.new_incarnation("unrolls") == 6
    assert run.new_incarnation("learn") == 1
    assert run.events_path("learn", 1).name == "learn-1.jsonl"


def test_stop_file(run):
    assert not run.stop_requested()
    run.request_stop()
    run.request_stop()
    assert run.stop_requested()
    run.clear_stop()
    run.clear_stop()
    assert not run.stop_requested()


def test_code_txt_keeps_every_code_that_ran(run):
    for _ in range(2):
        run.write_code()
        assert (run.path / "code.txt").read_text() == code_text()
    (run.path / "code.txt").write_text("tengen: earlier\n")
    for _ in range(2):
        run.write_code()
        text = (run.path / "code.txt").read_text()
        assert text == f"tengen: earlier\n\n{code_text()}"


def test_code_txt_keeps_bytes_of_any_encoding(run):
    before = b"caf\xe9: trained here\n"
    (run.path / "code.txt").write_bytes(before)
    run.write_code()
    found = (run.path / "code.txt").read_bytes()
    assert found == before + b"\n" + code_text().encode()


def test_looking_at_the_checkout_takes_no_lock_there(tmp_path, monkeypatch):
    monkeypatch.setattr("tengen.run.machine.checkout", lambda: tmp_path)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (
        ["init", "-q"],
        ["add", "."],
        [*identity, "commit", "-qm", "a", "--allow-empty"],
    ):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    (tmp_path / "file").write_text("a")
    subprocess.run(["git", "-C", str(tmp_path), "add", "."], check=True)
    os.utime(tmp_path / "file", (1, 1))  # now status would like to write the index
    before = (tmp_path / ".git" / "index").read_bytes()
    code_text()
    assert (tmp_path / ".git" / "index").read_bytes() == before


def test_code_names_commit_source_and_machine():
    rows = dict(line.split(": ", 1) for line in code_text().splitlines())
    assert rows["source sha256"] == source_sha256()
    assert len(rows["source sha256"]) == 64
    assert re.fullmatch("unknown|[0-9a-f]{40}( with changes)?", rows["commit"])
    assert {"commit", "python", "numpy", "torch", "machine"} <= set(rows)


def test_the_next_process_of_an_actor_goes_on_counting(run):
    assert read_actor_counts(run) == {}
    for index, num_rows in ((0, 128), (1, 64), (0, 32)):
        counts = ActorCounts(run, index)
        counts.add(num_rows, 1)
        counts.close()
    assert read_actor_counts(run) == {"num_rows": 224, "num_episodes": 3}


def test_counts_outlive_a_kill(run):
    child = os.fork()
    if child == 0:
        counts = ActorCounts(run, 0)
        for _ in range(3):
            counts.add(100, 2)
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    assert read_actor_counts(run) == {"num_rows": 300, "num_episodes": 6}


def test_a_damaged_file_is_named(run):
    counts = ActorCounts(run, 0)
    counts.add(1, 1)
    counts.close()
    path = run.actors / "0"
    path.write_bytes(b"x" + path.read_bytes()[1:])
    for read in (
        lambda: read_actor_counts(run),
        lambda: ActorCounts(run, 0),
    ):
        with refused(RunError, "/actors/0)"):
            read()


def test_a_learners_turn_that_is_redone_counts_frames_once(run):
    """A kill comes after the checkpoint and before the runner has the report."""
    pytest.importorskip("gymnasium")
    config = make_config("CartPole-v1", "dqn", None)
    learner = dataclasses.replace(config.learner, batch_size=24)
    config = dataclasses.replace(config, learner=learner)
    write_config(run, config)

    def learn():
        """A learner's process: the turns of one that goes on from the checkpoint."""
        context = RoleContext(at_once=True)
        role = make_role("learn", config, run, context)
        role.turn()
        role._save()
        counts = role._with_acted(role._experience.describe())
        role.close()
        return counts["num_rows"], counts["num_episodes"]

    assert learn() == (0, 0)
    counts = ActorCounts(run, 0)
    counts.add(500, 7)
    counts.close()
    assert [learn() for _ in range(3)] == [(500, 7)] * 3
