"""Scripts for Slurm, and every command line of deploy/ and of its page."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tengen.errors import UsageError
from tests.refusals import refused
from tests.unit.docs.typed import config_of, page_commands, script_commands

ROOT = Path(__file__).resolve().parents[3]
SLURM = ROOT / "deploy" / "slurm"
SBATCH = sorted(SLURM.glob("*.sbatch"))
MINIGO = sorted((ROOT / "deploy" / "k8s" / "minigo").rglob("*.sh"))
SCRIPTS = [*SBATCH, *MINIGO, ROOT / "deploy" / "docker" / "build.sh"]
PAGES = [
    ROOT / "docs" / "howto" / "machines" / "deploy.md",
    ROOT / "docs" / "howto" / "train" / "mlperf.md",
    ROOT / "docs" / "tutorials" / "first_player.md",
]


def all_commands():
    for path in SCRIPTS:
        yield from script_commands(path)
    for page in PAGES:
        yield from page_commands(page)


def test_they_are_found():
    words = [typed.words for typed in all_commands()]
    assert ("learn", "/shared/go9", "--threads", "8") in words
    assert ("selfplay", "/shared/go9", "--threads", "8") in words
    assert ("stop", "/runs/go9") in words
    assert any("mpi" in one for one in words)


@pytest.mark.parametrize(
    "typed", list(all_commands()), ids=lambda typed: " ".join(typed.words)
)
def test_tengen_takes_it(typed):
    # The placeholder TASK stands for any task.
    config_of(tuple("go/9" if word == "TASK" else word for word in typed.words))


def test_a_flag_that_is_not_there_is_refused(tmp_path):
    script = tmp_path / "a.sbatch"
    script.write_text(
        'RUN=${RUN:-/a}\nexec srun tengen learn "$RUN" \\\n  --thread 8\n'
    )
    (typed,) = script_commands(script)
    assert typed.words == ("learn", "/a", "--thread", "8")
    with refused(UsageError, "option (--thread)"):
        config_of(typed.words)


def test_what_only_names_tengen_is_no_command(tmp_path):
    page = tmp_path / "a.md"
    page.write_text(
        "`tengen` is a word, `tengen stop RUN` a command.\n\n```\n"
        "kubectl create namespace tengen\n"
        "kubectl exec job/a -- tengen status /runs/a --json      says how it is\n```\n"
    )
    assert [typed.words for typed in page_commands(page)] == [
        ("status", "/runs/a", "--json"),
        ("stop", "RUN"),
    ]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_it_passes_shellcheck(path):
    beside = Path(sys.executable).parent / "shellcheck"
    program = str(beside) if beside.exists() else shutil.which("shellcheck")
    if program is None:
        pytest.skip("shellcheck is not installed")
    done = subprocess.run([program, path], capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert done.returncode == 0, done.stderr


@pytest.fixture
def programs(tmp_path):
    """An environment in which tengen, srun and scontrol log their arguments."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "log"
    log.touch()
    tell = f'echo "$(basename "$0") $*" >> {log}\n'
    # A role runs until SIGTERM, except the role named by ENDS.
    role = (
        f"trap 'echo \"$1 ended\" >> {log}; exit 130' TERM\n{tell}"
        'case $1 in train) mkdir -p "$4"; touch "$4/run.json"; exit;; esac\n'
        '[ "$1" = "$ENDS" ] && exit 1\n'
        "while :; do sleep 0.02; done\n"
    )
    for name, text in (("tengen", role), ("srun", tell), ("scontrol", tell)):
        (folder / name).write_text(f"#!/bin/bash\n{text}")
        (folder / name).chmod(0o755)
    return {
        "PATH": f"{folder}:{os.environ['PATH']}",
        "RUN": str(tmp_path / "run"),
        "LOG": str(log),
        "ENDS": "",
    }


@contextlib.contextmanager
def started(name, environment):
    """Starts a Slurm script in its own session; kills all its processes at the end."""
    command = ["bash", str(SLURM / name)]
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def told(programs):
    return Path(programs["LOG"]).read_text().splitlines()


def wait_for(programs, line):
    for _ in range(30_000):
        if any(one.startswith(line) for one in told(programs)):
            return
        time.sleep(0.02)
    raise AssertionError(f"{line} was never told: {told(programs)}")


def test_the_learner_makes_the_run_and_saves_and_queues_again(programs):
    environment = {**programs, "SLURM_JOB_ID": "7"}
    with started("learner.sbatch", environment) as process:
        for role in ("learn", "export", "gate"):
            wait_for(programs, f"tengen {role}")
        process.send_signal(signal.SIGTERM)
        assert process.wait(900) != 0
    lines = told(programs)
    assert (
        lines[0] == f"tengen train go/9 --out {programs['RUN']} --games 0 --minutes 600"
    )
    assert {f"{role} ended" for role in ("learn", "export", "gate")} <= set(lines)
    assert lines[-1] == "scontrol requeue 7"


@pytest.mark.parametrize(("num_restarts", "is_kept"), [(None, False), ("1", True)])
def test_a_run_that_was_stopped_goes_on_where_somebody_submits_it(
    programs, num_restarts, is_kept
):
    run = Path(programs["RUN"])
    run.mkdir()
    for name in ("run.json", "STOP"):
        (run / name).touch()
    environment = {**programs, "ENDS": "gate"}
    if num_restarts is not None:
        environment["SLURM_RESTART_COUNT"] = num_restarts
    with started("learner.sbatch", environment) as process:
        assert process.wait(900) == 1
    assert not any(line.startswith("tengen train") for line in told(programs))
    assert (run / "STOP").exists() is is_kept


def test_a_role_of_the_learner_that_fails_ends_the_others(programs):
    environment = {**programs, "SLURM_JOB_ID": "7", "ENDS": "gate"}
    with started("learner.sbatch", environment) as process:
        assert process.wait(900) == 1
    lines = told(programs)
    assert not any(line.startswith("scontrol") for line in lines)


def test_a_task_of_the_array_is_the_role_itself(programs):
    Path(programs["RUN"]).mkdir()
    (Path(programs["RUN"]) / "run.json").touch()
    environment = {**programs, "SLURM_CPUS_PER_TASK": "6"}
    with started("selfplay_array.sbatch", environment) as process:
        wait_for(programs, f"tengen selfplay {programs['RUN']} --threads 6")
        # The script execs the role, so the signal reaches the role.
        process.send_signal(signal.SIGTERM)
        assert process.wait(900) == 130
    assert told(programs)[-1] == "selfplay ended"


def test_the_mpi_job_starts_a_process_a_task_on_the_cores_of_a_task(programs):
    environment = {**programs, "SLURM_CPUS_PER_TASK": "6"}
    subprocess.run(
        ["bash", SLURM / "train_mpi.sbatch"], env=environment, timeout=900, check=True
    )
    assert told(programs) == [
        "srun --mpi=pmix --cpus-per-task=6 tengen train go/9 --launch mpi --out "
        f"{programs['RUN']} --minutes 600"
    ]
