"""The MPIJobs of the MLPerf minigo benchmark: who is where, what their scripts do."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from scripts import check_manifests
from scripts.manifests import single
from scripts.manifests.checks.mpi import planned
from scripts.manifests.checks.ray import nodes_of_pods
from scripts.manifests.checks.sizes import pod_limits
from scripts.manifests.commands import (
    config_of,
    container_commands,
    entrypoint_commands,
    page_commands,
)
from scripts.manifests.overlay import K8S, ROOT, Overlay
from scripts.manifests.render import load_all, render

from tengen.errors import UsageError
from tengen.launch.cluster.table import check_fits, filled
from tengen.launch.cluster.table import table_of as table_of_ray
from tengen.launch.launcher import Placed
from tengen.launch.ranks.table import RankInfo, place
from tengen.launch.ranks.table import filled as filled_by_ranks
from tests.unit.deploy.overlays import rendered

OVERLAYS = ("mpijob-4gpu-64cpu", "mpijob-8gpu-128cpu")
PAGE = ROOT / "docs" / "howto" / "train" / "mlperf.md"
DATA = K8S / "minigo" / "data"


def table_of(overlay: Overlay) -> list[Placed]:
    (typed,) = container_commands(overlay)
    config = config_of(typed)
    assert config is not None
    return planned(typed.document, config)


def hosts_of(table: list[Placed], role: str) -> list[str]:
    return [one.host for one in table if role == one.worker.given_as]


@pytest.mark.parametrize(
    ("name", "num_learners"), [("mpijob-4gpu-64cpu", 2), ("mpijob-8gpu-128cpu", 4)]
)
def test_each_rank_has_the_role_that_the_page_says(
    name: str, num_learners: int
) -> None:
    overlay = rendered(name)
    table = table_of(overlay)
    workers = [f"minigo-worker-{index}" for index in range(2 * num_learners)]
    assert hosts_of(table, "learn") == workers[:num_learners]
    assert hosts_of(table, "selfplay") == workers[num_learners:]
    assert hosts_of(table, "export") == hosts_of(table, "gate") == workers[:1]
    threads = {one.worker.name: one.worker.num_threads for one in table}
    assert (threads["learn"], threads["learn-1"], threads["selfplay-0"]) == (12, 12, 16)
    # All processes of a pod see its one GPU.
    assert {one.devices for one in table} == {None}
    shown = [f"`{one.worker.name}`" for one in table]
    assert all(one in PAGE.read_text() for one in shown)


@pytest.mark.parametrize(("num_gpus", "num_learners"), [(4, 1), (8, 3)])
def test_one_host_shares_its_gpus_out_as_the_page_says(
    num_gpus: int, num_learners: int
) -> None:
    row = rf"^\| one host with {num_gpus} GPUs \| `mpirun -n (\d+) "
    (num_ranks,) = re.findall(row, PAGE.read_text(), re.M)
    typed = next(
        one
        for one in page_commands(PAGE)
        if f"mpirun -n {num_ranks} --bind" in one.path and "go/19" in one.words
    )
    config = config_of(typed)
    assert config is not None
    devices = tuple(map(str, range(num_gpus)))
    ranks = [
        RankInfo(rank=rank, host="first", cores=16 * num_gpus, devices=devices)
        for rank in range(int(num_ranks))
    ]
    table = place(filled_by_ranks(config, ranks), ranks)
    owned = [one.devices for one in table if one.worker.name.startswith("learn")]
    owned += [one.devices for one in table if one.worker.given_as == "selfplay"]
    assert len(owned) == num_gpus - 1
    assert hosts_of(table, "learn") == ["first"] * num_learners
    (left,) = [one.devices for one in table if one.worker.name == "export"]
    assert sorted([*owned, left]) == [(one,) for one in devices]


@pytest.mark.parametrize("queue", ["queue-volcano", "queue-kueue"])
@pytest.mark.parametrize("name", [*OVERLAYS, "rayjob-minigo"])
def test_the_data_come_by_one_job_with_a_queue_too(name: str, queue: str) -> None:
    """A Job that is there takes no other template."""
    key = "Job", "minigo-data"
    alone = rendered("minigo-data", queue).documents[key]
    assert rendered(name, queue).documents[key] == alone
    assert alone != rendered("minigo-data").documents[key]


@pytest.mark.parametrize("name", OVERLAYS)
def test_threads_follow_the_one_number_of_a_worker(name: str) -> None:
    overlay = rendered(name)
    (worker,) = [pod for pod in overlay.pods() if pod.replica == "Worker"]
    resources = worker.spec["containers"][0]["resources"]
    text = (K8S / "minigo" / "mpijob" / "mpijob.yaml").read_text()
    assert len(re.findall('cpu: "16"', text)) == 1
    for part in ("requests", "limits"):
        resources[part]["cpu"] = "20"
    threads = {one.worker.name: one.worker.num_threads for one in table_of(overlay)}
    assert threads["selfplay-0"] == 20


@pytest.mark.parametrize("name", OVERLAYS)
def test_it_is_as_large_as_its_name_says(name: str) -> None:
    overlay = rendered(name)
    (worker,) = [pod for pod in overlay.pods() if pod.replica == "Worker"]
    limits = pod_limits(worker)
    total = {key: int(value * worker.replicas) for key, value in limits.items()}
    named = f"mpijob-{total['nvidia.com/gpu']}gpu-{total['cpu']}cpu"
    assert named == name
    memory = total["memory"] // 2**30
    row = f"{total['cpu']} cores, {memory} GiB, {total['nvidia.com/gpu']} GPUs"
    assert row in PAGE.read_text()


@pytest.mark.parametrize("name", OVERLAYS)
def test_what_ranks_print_is_on_the_claim(name: str) -> None:
    launcher = next(pod for pod in rendered(name).pods() if pod.replica == "Launcher")
    (container,) = launcher.spec["containers"]
    variables = {one["name"]: one["value"] for one in container["env"]}
    folder = variables["LOGS_FOLDER"]
    claims = {
        one["name"]
        for one in launcher.spec["volumes"]
        if "persistentVolumeClaim" in one
    }
    mounts = [one for one in container["volumeMounts"] if one["name"] in claims]
    assert [folder.startswith(f"{one['mountPath']}/") for one in mounts] == [True]


@pytest.mark.parametrize("name", OVERLAYS)
def test_its_file_is_its_render(name: str) -> None:
    path = single.file_of(name)
    assert path is not None
    assert load_all(path.read_text()) == [*rendered(name).documents.values()]
    assert f"/{name}:" in path.read_text().splitlines()[0]


def test_the_files_are_written_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def elsewhere(name: str) -> Path | None:
        path = single.file_of(name)
        return None if path is None else tmp_path / path.name

    monkeypatch.setattr(check_manifests, "file_of", elsewhere)
    assert check_manifests.main([*OVERLAYS, "rayjob-go9", "--write"]) == 0
    written = [Path(line).name for line in capsys.readouterr().out.splitlines()]
    assert written == ["job_4GPU_64CPU.yaml", "job_8GPU_128CPU.yaml"]
    for name in written:
        assert (tmp_path / name).read_text() == (K8S / name).read_text()


def test_every_file_that_the_page_names_is_there() -> None:
    named = set(
        re.findall(r"(?:deploy|docs|scripts|tests)/[\w./-]*\w", PAGE.read_text())
    )
    assert len(named) > 8
    assert [one for one in sorted(named) if not (ROOT / one).exists()] == []


def test_on_ray_one_pod_learns_and_each_other_has_a_process_that_plays() -> None:
    overlay = rendered("rayjob-minigo")
    (typed,) = entrypoint_commands(overlay)
    config = config_of(typed)
    assert config is not None
    pods = [pod for pod in overlay.pods() if pod.ray_params is not None]
    nodes = nodes_of_pods(pods, most=False)
    assert [node.num_gpus for node in nodes].count(1) == 1
    config = filled(config, nodes)
    assert config.launch.of("selfplay").count == 4
    asked = {one.worker.name: one for one in table_of_ray(config, nodes)}
    assert (asked["learn"].num_cpus, asked["learn"].num_gpus) == (12, 1)
    assert (asked["selfplay-3"].num_cpus, asked["selfplay-3"].num_gpus) == (14, 0)
    check_fits(config, list(asked.values()), nodes)


INDEXED = re.compile(r"/args/[0-9]+$")


def test_an_argument_is_changed_only_where_it_is_the_one_that_is_meant(
    tmp_path: Path,
) -> None:
    """Another argument before the number of ranks moves all others by one."""
    shutil.copytree(K8S, tmp_path / "k8s")
    base = tmp_path / "k8s" / "minigo" / "mpijob" / "mpijob.yaml"
    overlay = tmp_path / "k8s" / "overlays" / "mpijob-8gpu-128cpu"
    assert render(overlay) == rendered("mpijob-8gpu-128cpu").documents
    whole = base.read_text()
    first = "                - mpirun\n"
    for changed in (
        whole.replace(first, f"{first}                - --verbose\n"),
        whole.replace("learn.count=2", "learn.count=1"),
        whole.replace("replicas: 4", "replicas: 2"),
    ):
        assert changed != whole
        base.write_text(changed)
        with pytest.raises(UsageError, match="must fit MPIJob/minigo, which has no"):
            render(overlay)
        if shutil.which("kubectl") is not None:
            done = subprocess.run(
                ["kubectl", "kustomize", overlay], capture_output=True, check=False
            )
            assert done.returncode != 0


def test_each_argument_that_is_replaced_is_tested_first() -> None:
    num_seen = 0
    for path in K8S.rglob("kustomization.yaml"):
        for patch in yaml.safe_load(path.read_text()).get("patches", ()):
            tested = set()
            for operation in yaml.safe_load(patch["patch"]):
                if operation["op"] == "test":
                    tested.add(operation["path"])
                elif INDEXED.search(operation["path"]):
                    assert operation["path"] in tested
                    num_seen += 1
    assert num_seen == 3


def run(
    script: str, *words: str, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    searched = os.environ["PATH"]
    return subprocess.run(
        ["bash", DATA / script, *words],
        env={"PATH": f"{path}:{searched}" if path else searched, "PAUSE_S": "0.05"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def test_a_wait_ends_with_its_file_or_its_deadline(tmp_path: Path) -> None:
    file = tmp_path / "READY"
    done = run("wait.sh", str(file), "1", "job/minigo-data")
    assert done.returncode == 1
    rule = f"data ({file}) must be there after 1 s; look at job/minigo-data\n"
    assert done.stderr == rule
    first = done.stdout.splitlines()[0]
    assert first == f"waits for {file} of job/minigo-data, 0 s of 1"
    file.touch()
    done = run("wait.sh", str(file), "1", "job/minigo-data")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def told(num_generations: int, num_games: int) -> str:
    """What the import prints, as a line of a script; there is one small one, too."""
    lines = ["000009: 8191 games, 3 rows"]
    lines += [
        f"{number:06d}: {num_games} games, 99 rows"
        for number in range(10, 10 + num_generations)
    ]
    words = " ".join(f'"{line}"' for line in lines)
    return f"[[ $3 != --examples ]] || printf '%s\\n' {words}\n"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Stand-ins: python3 fetches what there is, tengen makes what it is asked for."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "log"
    archive = tmp_path / "archive"
    (archive / "ck" / "work_dir").mkdir(parents=True)
    # Holdout games sort before those of self-play, and are not learned from.
    for name in ("holdout", "selfplay"):
        (archive / "ck" / "data" / name / "000017").mkdir(parents=True)
    for number in (9, 10):
        (archive / "ck" / "work_dir" / f"model-{number}.index").touch()
    fetch = f'tar -czf "$2/checkpoint.tar.gz" -C {archive} ck\n'
    make = f'echo "$*" >> {log}\nmkdir -p "$6"\n{told(5, 8192)}'
    for name, text in (("python3", fetch), ("tengen", make)):
        (folder / name).write_text(f"#!/bin/bash\n{text}")
        (folder / name).chmod(0o755)
    return folder


def test_data_is_ready_when_all_of_it_is_there(tmp_path: Path, programs: Path) -> None:
    data = tmp_path / "data"
    done = run("fetch.sh", str(data), path=programs)
    assert (done.returncode, done.stderr) == (0, "")
    fetched = f"{data}/fetched"
    asked = (tmp_path / "log").read_text().splitlines()
    assert asked == [
        f"data import-minigo --checkpoint {fetched}/target --out {data}/target",
        f"data import-minigo --checkpoint {fetched}/unpacked/ck/work_dir/model-10 "
        f"--out {data}/checkpoint",
        f"data import-minigo --examples {fetched}/unpacked/ck/data/selfplay "
        f"--out {data}/examples",
    ]
    assert (data / "READY").exists()
    # Another time it makes nothing.
    assert "is there already" in run("fetch.sh", str(data), path=programs).stdout
    assert (tmp_path / "log").read_text().splitlines() == asked


def test_a_network_that_comes_later_is_waited_for(
    tmp_path: Path, programs: Path
) -> None:
    fetch = programs / "python3"
    fetch.rename(programs / "online")
    offline = f"[[ -e {tmp_path}/tried ]] || {{ touch {tmp_path}/tried; exit 1; }}"
    fetch.write_text(f'#!/bin/bash\n{offline}\nexec {programs}/online "$@"\n')
    fetch.chmod(0o755)
    data = tmp_path / "data"
    done = run("fetch.sh", str(data), path=programs)
    assert (done.returncode, done.stderr) == (0, "")
    assert "fetches what is missing again, after 0 s of 18000\n" in done.stdout
    # What is not the network's fault is not tried again.
    fetch.write_text("#!/bin/bash\nexit 2\n")
    other = tmp_path / "other"
    assert run("fetch.sh", str(other), path=programs).returncode == 2
    assert not (other / "READY").exists()


def test_data_that_cannot_be_made_is_not_ready(tmp_path: Path, programs: Path) -> None:
    (programs / "tengen").write_text("#!/bin/bash\nexit 1\n")
    data = tmp_path / "data"
    assert run("fetch.sh", str(data), path=programs).returncode == 1
    assert not (data / "READY").exists()
    nothing = 'tar -czf "$2/checkpoint.tar.gz" -T /dev/null'
    (programs / "python3").write_text(f"#!/bin/bash\n{nothing}\n")
    other = tmp_path / "other"
    done = run("fetch.sh", str(other), path=programs)
    assert done.returncode == 1
    rule = "must have a checkpoint and generations of games; remove it"
    assert done.stderr == f"data ({other}/fetched/unpacked) {rule}\n"


def test_games_of_two_folders_are_refused_by_name(
    tmp_path: Path, programs: Path
) -> None:
    data, ck = tmp_path / "data", tmp_path / "archive" / "ck"
    (ck / "old" / "selfplay" / "000003").mkdir(parents=True)
    done = run("fetch.sh", str(data), path=programs)
    unpacked = f"{data}/fetched/unpacked"
    assert (done.returncode, done.stderr) == (
        1,
        f"data ({unpacked}) must have one folder of generations, not "
        f"{unpacked}/ck/data/selfplay and {unpacked}/ck/old/selfplay; remove the "
        f"others\n",
    )
    assert not (data / "READY").exists()


@pytest.mark.parametrize(("num_generations", "num_games"), [(4, 8192), (9, 8191)])
def test_data_of_too_few_games_is_not_ready(
    tmp_path: Path, programs: Path, num_generations: int, num_games: int
) -> None:
    make = f'mkdir -p "$6"\n{told(num_generations, num_games)}'
    (programs / "tengen").write_text(f"#!/bin/bash\n{make}")
    data = tmp_path / "data"
    done = run("fetch.sh", str(data), path=programs)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    num_whole = num_generations if num_games >= 8192 else 0
    rule = f"must have 5 generations of at least 8192 games, not {num_whole}; look at"
    assert line.startswith(f"data ({data}/fetched/unpacked/ck/data/selfplay) {rule}")
    assert not (data / "READY").exists()


def test_a_worker_hands_on_the_variables_that_ranks_need(tmp_path: Path) -> None:
    sshd = tmp_path / "sshd"
    sshd.write_text("#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    sshd.chmod(0o755)
    named = {
        "NCCL_P2P_DISABLE": "1",
        "NCCL_SOCKET_IFNAME": "eth0",
        "TENGEN_EXAMPLE": "a=b",
    }
    ended = subprocess.run(
        ["bash", str(K8S / "minigo" / "mpijob" / "worker.sh")],
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}", **named, "OTHER": "no"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert ended.returncode == 1
    assert ended.stderr.startswith("sshd (exit code 0) must not end")
    handed = next(
        line for line in ended.stdout.splitlines() if line.startswith("SetEnv ")
    )
    wanted = {f"{name}={value}" for name, value in named.items()}
    assert set(handed.split()[1:]) == {"HOME=/tmp", *wanted}
