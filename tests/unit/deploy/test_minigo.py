"""MLPerf minigo on clusters: the placement of roles, and the scripts in its pods."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from scripts.manifests.table import DATA, K8S, MPI_WORKERS, PORTS, ROOT, SIZES

from tengen.launch.ranks.table import RankInfo, filled, place
from tests.unit.deploy.test_manifests import config_in
from tests.unit.docs.typed import config_of, page_commands

PAGE = ROOT / "docs" / "howto" / "train" / "mlperf.md"
SCRIPTS = K8S / "minigo" / "data"


def placed(config, hosts, cores, num_gpus):
    """Returns tengen's placement of roles on ranks."""
    devices = tuple(map(str, range(num_gpus)))
    ranks = [
        RankInfo(rank=rank, host=host, cores=cores, devices=devices)
        for rank, host in enumerate(hosts)
    ]
    return place(filled(config, ranks), ranks)


def hosts_of(table, role):
    return [one.host for one in table if role == one.worker.given_as]


@pytest.mark.parametrize(("name", "num_workers"), MPI_WORKERS.items())
def test_each_rank_has_the_role_that_the_page_says(name, num_workers):
    size = SIZES["minigo-worker"]
    workers = [f"minigo-worker-{index}" for index in range(num_workers)]
    config = config_in(f"overlays/{name}/mpijob.yaml")
    table = placed(config, workers, int(size.cpu), size.gpus)
    half = num_workers // 2
    # Learners and self-play processes have one GPU each.
    assert hosts_of(table, "learn") == workers[:half]
    assert hosts_of(table, "selfplay") == workers[half:]
    assert hosts_of(table, "export") == hosts_of(table, "gate") == workers[:1]
    assert config.launch.listen == f"{workers[0]}.minigo:{PORTS['table']}"
    threads = {one.worker.name: one.worker.num_threads for one in table}
    assert (threads["learn"], threads["learn-1"], threads["selfplay-0"]) == (12, 12, 16)
    # No devices are assigned: each process sees the one GPU of its pod.
    assert {one.devices for one in table} == {None}
    page = PAGE.read_text()
    assert all(f"`{one.worker.name}`" in page for one in table)
    total = (
        num_workers * int(size.cpu),
        num_workers * int(size.memory.removesuffix("Gi")),
        num_workers * size.gpus,
    )
    assert f"mpijob-{total[2]}gpu-{total[0]}cpu" == name
    assert "{} cores, {} GiB, {} GPUs".format(*total) in page


@pytest.mark.parametrize(("num_gpus", "num_learners"), [(4, 1), (8, 3)])
def test_one_host_shares_its_gpus_out_as_the_page_says(num_gpus, num_learners):
    row = rf"^\| one host with {num_gpus} GPUs \| `mpirun -n (\d+) "
    (num_ranks,) = re.findall(row, PAGE.read_text(), re.M)
    typed = next(
        one
        for one in page_commands(PAGE)
        if f"mpirun -n {num_ranks} --bind" in one.where and "go/19" in one.words
    )
    config = config_of(typed.words)
    table = placed(config, ["first"] * int(num_ranks), 16 * num_gpus, num_gpus)
    owned = [one.devices for one in table if one.worker.name.startswith("learn")]
    owned += [one.devices for one in table if one.worker.given_as == "selfplay"]
    assert len(owned) == num_gpus - 1
    assert hosts_of(table, "learn") == ["first"] * num_learners
    (left,) = [one.devices for one in table if one.worker.name == "export"]
    assert sorted([*owned, left]) == [(one,) for one in map(str, range(num_gpus))]


def test_ssh_has_one_port_and_one_key_on_both_sides():
    folder = K8S / "minigo" / "mpijob"
    key = "/etc/tengen/ssh/"
    for name, fields in (
        ("ssh_config", ("IdentityFile",)),
        ("sshd_config", ("HostKey", "AuthorizedKeysFile")),
    ):
        text = (folder / name).read_text()
        found = dict(re.findall(r"^\s*(\w+) (.+)$", text, re.M))
        assert found["Port"] == str(PORTS["ssh"])
        assert all(found[field].startswith(key) for field in fields)


def run(script, *words, path=None):
    searched = os.environ["PATH"]
    return subprocess.run(
        ["bash", SCRIPTS / script, *words],
        env={"PATH": f"{path}:{searched}" if path else searched, "PAUSE_S": "0.05"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )


def test_a_wait_ends_with_its_file_or_its_deadline(tmp_path):
    file = tmp_path / "READY"
    done = run("wait.sh", str(file), "1", "job/minigo-data")
    assert done.returncode == 1
    assert f"data ({file}) must be there after 1 s" in done.stderr
    assert done.stdout.startswith(f"waits for {file} of job/minigo-data, 0 s of 1\n")
    file.touch()
    done = run("wait.sh", str(file), "1", "job/minigo-data")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def told(num_generations, num_games):
    """Returns a shell line that prints the import's output; one generation is small."""
    lines = ["000009: 8191 games, 3 rows"]
    lines += [
        f"{number:06d}: {num_games} games, 99 rows"
        for number in range(10, 10 + num_generations)
    ]
    words = " ".join(f'"{line}"' for line in lines)
    return f"[[ $3 != --examples ]] || printf '%s\\n' {words}\n"


@pytest.fixture
def programs(tmp_path):
    """Fakes: python3 fetches an archive, and tengen creates the requested folders."""
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "log"
    archive = tmp_path / "archive"
    (archive / "ck" / "work_dir").mkdir(parents=True)
    # Holdout games sort before self-play games, and are not training data.
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


def test_data_is_ready_when_all_of_it_is_there(tmp_path, programs):
    data = tmp_path / Path(DATA).name
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
    # The created folders are those that the runs start from.
    made = {f"{DATA}/{line.rpartition('/')[2]}" for line in asked}
    for file in ("rayjob-minigo/rayjob.yaml", "mpijob-4gpu-64cpu/mpijob.yaml"):
        text = (K8S / "overlays" / file).read_text()
        assert set(re.findall(rf"{DATA}/[a-z]+", text)) == made
    assert (data / "READY").exists()
    # A second call creates nothing.
    assert "is there already" in run("fetch.sh", str(data), path=programs).stdout
    assert (tmp_path / "log").read_text().splitlines() == asked


def test_a_network_that_comes_later_is_waited_for(tmp_path, programs):
    fetch = programs / "python3"
    fetch.rename(programs / "online")
    offline = f"[[ -e {tmp_path}/tried ]] || {{ touch {tmp_path}/tried; exit 1; }}"
    fetch.write_text(f'#!/bin/bash\n{offline}\nexec {programs}/online "$@"\n')
    fetch.chmod(0o755)
    done = run("fetch.sh", str(tmp_path / "data"), path=programs)
    assert (done.returncode, done.stderr) == (0, "")
    assert "fetches what is missing again, after 0 s of 18000\n" in done.stdout


NOTHING = 'tar -czf "$2/checkpoint.tar.gz" -T /dev/null'
FEW = "must have 5 generations of at least 8192 games, not"


@pytest.mark.parametrize(
    ("program", "text", "code", "said"),
    [
        # Errors that are not caused by the network are not retried.
        ("python3", "exit 2", 2, ""),
        ("tengen", "exit 1", 1, ""),
        ("python3", NOTHING, 1, "must have a checkpoint and generations of games"),
        ("tengen", f'mkdir -p "$6"\n{told(4, 8192)}', 1, f"{FEW} 4"),
        ("tengen", f'mkdir -p "$6"\n{told(9, 8191)}', 1, f"{FEW} 0"),
    ],
)
def test_data_that_cannot_be_made_is_not_ready(
    tmp_path, programs, program, text, code, said
):
    (programs / program).write_text(f"#!/bin/bash\n{text}\n")
    data = tmp_path / "data"
    done = run("fetch.sh", str(data), path=programs)
    assert done.returncode == code
    assert said in done.stderr
    assert not (data / "READY").exists()


def test_games_of_two_folders_are_refused_by_name(tmp_path, programs):
    data, ck = tmp_path / "data", tmp_path / "archive" / "ck"
    (ck / "old" / "selfplay" / "000003").mkdir(parents=True)
    done = run("fetch.sh", str(data), path=programs)
    unpacked = f"{data}/fetched/unpacked/ck"
    both = f"{unpacked}/data/selfplay and {unpacked}/old/selfplay"
    assert done.returncode == 1
    assert f"must have one folder of generations, not {both};" in done.stderr
    assert not (data / "READY").exists()


def test_a_worker_hands_on_the_variables_that_ranks_need(tmp_path):
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
