"""The MPIJob of the MLPerf minigo benchmark, in simulated pods without a cluster.

The workers and the launcher run the scripts, settings and commands of the manifest as
user 10001, with a read-only root and one network per pod. Unlike the manifest, they run
the small benchmark on CPUs, and without tini.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tengen.observe import read_hosts
from tengen.run import RunDirectory, find_files
from tests.faults.pods import Pods
from tests.faults.role_processes import check_learner, games_in_segments
from tests.integration.runs import wait_for

NEEDED = ("ip", "sshd", "ssh", "mpirun", "setpriv", "openssl")
_PATH = os.pathsep.join((os.environ["PATH"], "/usr/sbin"))

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        os.getuid() != 0 or not all(shutil.which(one, path=_PATH) for one in NEEDED),
        reason=f"pods without a cluster need root and {', '.join(NEEDED)}",
    ),
]

MANIFEST = Path(__file__).parents[2] / "deploy" / "k8s" / "job_4GPU_64CPU.yaml"
OBJECTS = {
    (one["kind"], one["metadata"]["name"]): one
    for one in yaml.safe_load_all(MANIFEST.read_text())
}
WORKERS = [f"minigo-worker-{index}" for index in range(4)]
LAUNCHER = "minigo-launcher"
GAMES = 24
MODELS = 6
SMALLER = (
    f"agent.iterations={MODELS}",
    f"agent.actor.games_per_generation={GAMES}",
    "agent.actor.full_simulations=16",
    "agent.actor.cheap_simulations=8",
    "agent.actor.num_slots=8",
    "agent.target.opponent=random",
    "agent.target.num_games=16",
    "agent.target.confirming_games=16",
    "agent.target.chunk_games=8",
    f"store.min_games={GAMES}",
)
"""Settings that shorten the small recipe to a test of minutes."""
HERE = ("inference.backend=openvino", "launch.roles.learn.num_cpus=2")
"""Settings for a machine with two cores and no GPU."""
REPLACED = (
    "agent.target.",
    "launch.roles.learn.num_cpus",
    "learner.initial_model",
    "store.imported",
)
"""Settings of the manifest that the small benchmark omits or replaces."""


def small(args: list[str], task: str, settings: tuple[str, ...]) -> list[str]:
    """Returns the launcher's arguments, changed to the small benchmark."""
    place = args.index("tengen")
    kept = [
        words
        for words in zip(args[place + 3 :: 2], args[place + 4 :: 2], strict=True)
        if words[0] not in ("--recipe", "--devices")
        and not words[1].startswith(REPLACED)
    ]
    found = [*args[:place], "tengen", "train", task]
    found += ["--recipe", "mlperf_minigo_small"]
    found += [word for words in kept for word in words]
    for setting in (*settings, *HERE):
        found += ["--set", setting]
    return found


def ssh_keys(folder: Path) -> dict[str, str]:
    """Returns an SSH secret like that of the operator: a 521-bit ECDSA key."""
    key = folder / "id_rsa"
    words = ["ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-m", "PEM", "-N", ""]
    subprocess.run([*words, "-f", str(key)], check=True, capture_output=True)
    public = " ".join(key.with_suffix(".pub").read_text().split()[:2]) + "\n"
    return {"id_rsa": key.read_text(), "id_rsa.pub": public, "authorized_keys": public}


def certificate(folder: Path) -> dict[str, str]:
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes "
    words += f"-days 2 -subj /CN=minigo -keyout {folder}/tls.key -out {folder}/tls.crt"
    subprocess.run(words.split(), check=True, capture_output=True)
    return {name: (folder / name).read_text() for name in ("tls.key", "tls.crt")}


@pytest.fixture
def pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pods]:
    monkeypatch.setenv("PATH", _PATH)
    spec = OBJECTS["MPIJob", "minigo"]["spec"]
    files = {}
    for name, folder in (("minigo-mpi", "mpi"), ("minigo-data", "data")):
        for file, text in OBJECTS["ConfigMap", name]["data"].items():
            files[f"/etc/tengen/{folder}/{file}"] = text
    for file, text in ssh_keys(tmp_path).items():
        files[f"{spec['sshAuthMountPath']}/{file}"] = text
    for file, text in certificate(tmp_path).items():
        files[f"/etc/tengen/tls/{file}"] = text
    slots = spec["slotsPerWorker"]
    lines = [f"{name}.minigo.test.svc slots={slots}\n" for name in WORKERS]
    files["/etc/mpi/hostfile"] = "".join(lines)
    made = Pods([*WORKERS, LAUNCHER], "minigo", tmp_path, files)
    yield made
    made.close()


def start_worker(pods: Pods, name: str) -> None:
    spec = OBJECTS["MPIJob", "minigo"]["spec"]
    (container,) = spec["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]
    pods.start(name, container["command"][2:], PYTHONUNBUFFERED="1")


def start_launcher(
    pods: Pods, task: str = "go/5", settings: tuple[str, ...] = SMALLER
) -> None:
    spec = OBJECTS["MPIJob", "minigo"]["spec"]
    pod = spec["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    (container,) = pod["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    # The operator sets these variables for Open MPI.
    variables["OMPI_MCA_orte_keep_fqdn_hostnames"] = "true"
    variables["OMPI_MCA_orte_default_hostfile"] = "/etc/mpi/hostfile"
    words = [*container["command"][2:], *small(container["args"], task, settings)]
    pods.start(LAUNCHER, words, **variables)


def has_learned(pods: Pods, run: RunDirectory) -> bool:
    assert pods.is_running(LAUNCHER), pods.log(LAUNCHER).read_text()[-2000:]
    sealed = find_files(run.experience, "selfplay-*/*/*.npz")
    return len(sealed) > 1 and (run.checkpoints.latest() or 0) > 0


def check_places(run: RunDirectory) -> None:
    """Checks that two ranks learned and two played, each on its own host."""
    hosts = read_hosts(run)
    assert hosts is not None
    places = [one for one in hosts.places if one.place != "rank 0"]
    assert {one.place: (one.host, one.name) for one in places} == {
        "rank 1": (WORKERS[1], "learn-1"),
        "rank 2": (WORKERS[2], "selfplay-0"),
        "rank 3": (WORKERS[3], "selfplay-1"),
    }


def test_a_benchmark_of_workers_that_come_and_go_is_whole_on_the_disk(
    pods: Pods,
) -> None:
    start_launcher(pods)
    # The launcher reports that it waits for the workers.
    wait_for(lambda: "waits for 4 of 4 workers" in pods.log(LAUNCHER).read_text())
    for name in WORKERS:
        start_worker(pods, name)
    run = RunDirectory(pods.runs / "minigo")
    wait_for(lambda: has_learned(pods, run))
    # A drained node's roles save, and the launcher fails.
    assert pods.end(WORKERS[3], 90) == 0
    said = pods.log(WORKERS[3]).read_text()
    assert re.search(r"^ends; roles that save: [1-9]", said, re.M)
    assert "all have saved" in said
    assert pods.wait(LAUNCHER, 120) != 0
    before = len(find_files(run.experience, "selfplay-*/*/*.npz"))
    games = {game for _, game, _ in games_in_segments(run)}
    # The Job's next attempt, with the pod restarted.
    start_worker(pods, WORKERS[3])
    start_launcher(pods)
    assert pods.wait(LAUNCHER, 600) == 0, pods.log(LAUNCHER).read_text()[-2000:]
    # The operator deletes the workers after the launcher; they have no work left.
    for name in WORKERS:
        assert pods.end(name, 20) == 0
    check_places(run)
    found = [game for _, game, _ in games_in_segments(run)]
    assert len(found) == len(set(found))
    assert games <= set(found)
    assert len(find_files(run.experience, "selfplay-*/*/*.npz")) > before
    assert check_learner(run) > 0
    assert run.models.latest() == MODELS
    # The run has the result and the games that led to it.
    result = json.loads((run.eval / "target" / "result.json").read_text())
    assert result["target"] == "random"
    assert result["num_models"] == result["passed"]
    assert result["passed_after_s"] > 0
    for number in range(1, result["passed"] + 1):
        record = json.loads((run.eval / "target" / f"{number:06d}.json").read_text())
        assert (record["win_rate"] >= 0.5) == (number == result["passed"])
        played = sum(record[name] for name in ("wins", "draws", "losses"))
        assert played == record["num_games"] == 16
        games_folder = run.path / "games" / "target" / f"{number:06d}"
        assert len(list(games_folder.rglob("*.sgf"))) == 16
    # The output of the ranks is stored for each attempt.
    tries = sorted((pods.runs / "minigo-mpirun").iterdir())
    assert len(tries) == 2
    said = [path.read_text() for path in tries[-1].rglob("rank.0/stdout")]
    assert any("rank 3 on minigo-worker-3: selfplay-1" in text for text in said)


@pytest.mark.parametrize("killed", [1, 3])
def test_the_benchmark_on_seven_by_seven_outlives_a_learner_and_an_actor(
    pods: Pods, killed: int
) -> None:
    # Otherwise uses the recipe's own settings, for benchmarks/results/mlperf.md.
    settings = ("agent.target.opponent=mcts:200",)
    for name in WORKERS:
        start_worker(pods, name)
    start_launcher(pods, "go/7", settings)
    run = RunDirectory(pods.runs / "minigo")
    wait_for(lambda: has_learned(pods, run), 1800)
    pods.kill(WORKERS[killed])
    assert pods.wait(LAUNCHER, 300) != 0
    before = run.models.latest() or 0
    games = {game for _, game, _ in games_in_segments(run)}
    start_worker(pods, WORKERS[killed])
    start_launcher(pods, "go/7", settings)
    assert pods.wait(LAUNCHER, 3600) == 0, pods.log(LAUNCHER).read_text()[-2000:]
    for name in WORKERS:
        assert pods.end(name, 20) == 0
    check_places(run)
    assert games <= {game for _, game, _ in games_in_segments(run)}
    assert run.models.latest() == 14 > before
    result = json.loads((run.eval / "target" / "result.json").read_text())
    assert result["target"] == "mcts:200"
    assert result["passed"] is not None
    print(json.dumps(result, indent=1))
