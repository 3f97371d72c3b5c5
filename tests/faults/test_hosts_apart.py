"""Hosts without a shared disk, as network namespaces: disconnected, lost, restarted."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tengen.observe import read_events
from tengen.run import RunDirectory, find_files, read_actor_counts, run_token
from tengen.transport import fingerprint_of
from tests.faults.role_processes import (
    GAMES,
    check_learner,
    games_in_segments,
    make_run,
)
from tests.integration.runs import run_command, wait_for

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        os.getuid() != 0 or shutil.which("ip") is None,
        reason="network namespaces need root and iproute2",
    ),
]

NET = "10.191.0"
PORT = 7300
CUT_S = 60


class Hosts:
    """Hosts: network namespaces that are connected by a bridge, and their processes."""

    def __init__(self, names: list[str], logs: Path) -> None:
        self._logs = logs
        self._names = names
        self.processes: dict[str, list[subprocess.Popen[bytes]]] = {}
        self.close()
        ip("link", "add", "tgbr", "type", "bridge")
        ip("addr", "add", f"{NET}.1/24", "dev", "tgbr")
        ip("link", "set", "tgbr", "up")
        for place, name in enumerate(names, start=2):
            ip("netns", "add", f"tg-{name}")
            ip("link", "add", f"tg{name}", "type", "veth", "peer", f"tgp{name}")
            ip("link", "set", f"tgp{name}", "netns", f"tg-{name}")
            ip("link", "set", f"tg{name}", "master", "tgbr", "up")
            inside = ("netns", "exec", f"tg-{name}", "ip")
            ip(*inside, "addr", "add", f"{NET}.{place}/24", "dev", f"tgp{name}")
            ip(*inside, "link", "set", f"tgp{name}", "up")
            ip(*inside, "link", "set", "lo", "up")

    def address(self, name: str) -> str:
        return f"{NET}.{self._names.index(name) + 2}"

    def start(
        self, name: str, *words: str, has_memory: bool = False, **env: str
    ) -> subprocess.Popen[bytes]:
        """Starts a process on a host, in its own shared memory if ``has_memory``."""
        command = ["ip", "netns", "exec", f"tg-{name}"]
        if has_memory:
            own = 'mount -t tmpfs tmpfs /dev/shm && exec "$@"'
            command += ["sh", "-c", own, "sh"]
        command += [sys.executable, "-m", "tengen"]
        with open(self._logs / f"{name}-{words[0]}.log", "ab") as log:
            process = subprocess.Popen(
                [*command, *words, "--threads", "1"],
                stdout=log,
                stderr=log,
                env={**os.environ, **env},
            )
        self.processes.setdefault(name, []).append(process)
        return process

    def cut(self, name: str) -> None:
        """Disconnects a host silently."""
        ip("link", "set", f"tg{name}", "down")

    def mend(self, name: str) -> None:
        ip("link", "set", f"tg{name}", "up")

    def lose(self, name: str) -> None:
        """The host dies, with all that works there."""
        for process in self.processes.pop(name, []):
            process.kill()
            process.wait()

    def close(self) -> None:
        for name in [*self.processes]:
            self.lose(name)
        for name in self._names:
            subprocess.run(["ip", "netns", "del", f"tg-{name}"], capture_output=True)
            subprocess.run(["ip", "link", "del", f"tg{name}"], capture_output=True)
        subprocess.run(["ip", "link", "del", "tgbr"], capture_output=True)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    pem, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
    command += f"-nodes -days 2 -subj /CN=tengen -keyout {key} -out {pem}"
    subprocess.run(command.split(), check=True, capture_output=True)
    return pem, key


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    made = Hosts(["home", "near", "far"], tmp_path)
    yield made
    made.close()


def stop(run: RunDirectory) -> None:
    done = run_command([sys.executable, "-m", "tengen", "stop", str(run.path)])
    assert (done.returncode, done.stderr) == (0, "")


def listening(hosts: Hosts, certificate: tuple[Path, Path]) -> tuple[str, ...]:
    return (
        f"launch.listen={hosts.address('home')}:{PORT}",
        f"launch.certificate_file={certificate[0]}",
        f"launch.key_file={certificate[1]}",
    )


def test_games_of_two_hosts_come_once(tmp_path, hosts, certificate):
    run = make_run(tmp_path / "run", *listening(hosts, certificate))
    token, print_of = run_token(run), fingerprint_of(certificate[0])

    def start_home() -> None:
        for role in ("learn", "export", "gate"):
            hosts.start("home", role, str(run.path))

    def start_play(name: str) -> None:
        words = ("--connect", f"{hosts.address('home')}:{PORT}")
        words += ("--fingerprint", print_of)
        folder = str(tmp_path / name)
        hosts.start(name, "selfplay", folder, *words, TENGEN_RUN_TOKEN=token)

    def num_sealed(folder: RunDirectory | None = None) -> int:
        return len(find_files((folder or run).experience, "selfplay-*/*/*.npz"))

    start_home()
    for name in ("near", "far"):
        start_play(name)
    wait_for(lambda: num_sealed() >= 6)
    far = RunDirectory(tmp_path / "far")
    newest = max(int(p.stem) for p in find_files(far.experience, "*/*/*.npz"))
    hosts.cut("far")
    time.sleep(CUT_S)
    played = [int(p.stem) for p in find_files(far.experience, "*/*/*.npz")]
    assert max(played) > newest  # self-play continued while disconnected
    hosts.mend("far")
    wait_for(lambda: find_files(run.experience, f"*/*/{max(played):06d}.npz"))
    # The run's host is lost and restarted.
    hosts.lose("home")
    time.sleep(5)
    start_home()
    before, steps = num_sealed(), run.checkpoints.latest()
    assert steps is not None
    wait_for(lambda: num_sealed() > before + 4)
    wait_for(lambda: (run.checkpoints.latest() or 0) > steps)
    # One host is lost for good.
    sent = {game for _, game, _ in games_in_segments(run)}
    hosts.lose("near")
    before = num_sealed()
    wait_for(lambda: num_sealed() > before + 4)
    stop(run)
    for process in [*hosts.processes["far"], *hosts.processes["home"]]:
        assert process.wait(900) == 0
    found = [game for _, game, _ in games_in_segments(run)]
    assert len(found) == len(set(found))
    assert sent <= set(found)
    by_generation: dict[int, int] = {}
    for generation, _ in found:
        by_generation[generation] = by_generation.get(generation, 0) + 1
    assert set(by_generation.values()) == {GAMES}
    assert {game for _, game, _ in games_in_segments(far)} <= set(found)
    assert check_learner(run) > 0


def test_a_learner_of_another_host_is_cut_off_and_comes_back(
    tmp_path, hosts, certificate
):
    two = "launch.roles.learn.count=2"
    run = make_run(tmp_path / "run", *listening(hosts, certificate), two)
    for role in ("learn", "export", "gate", "selfplay"):
        hosts.start("home", role, str(run.path))
    # The follower has the run directory but can reach the leader only by network.
    words = ("learn", str(run.path), "--index", "1")
    hosts.start("far", *words, has_memory=True)

    def learn_by(number: int) -> Callable[[], bool]:
        """Returns a function that tells if ``number`` learners have made new steps."""
        start_s = time.time()
        path = run.path / "events" / "learn-command-1.jsonl"

        def happened() -> bool:
            return any(
                event["kind"] == "turn"
                and event["time_s"] > start_s
                and event.get("num_steps", 0) > 0
                and event["num_learners"] == number
                for event in read_events(path)
            )

        return happened

    wait_for(learn_by(2))
    hosts.cut("far")
    # The leader detects a dead connection after 25 s, although it would wait 330 s for
    # a connected follower that is silent.
    wait_for(learn_by(1))
    hosts.mend("far")
    wait_for(learn_by(2))
    stop(run)
    for name in ("far", "home"):
        for process in hosts.processes[name]:
            assert process.wait(900) == 0
    assert check_learner(run) > 0


def test_an_actor_of_another_host_is_cut_off_and_comes_back(
    tmp_path, hosts, certificate
):
    pytest.importorskip("gymnasium")
    out = tmp_path / "run"
    command = [sys.executable, "-m", "tengen", "train", "CartPole-v1", "--agent", "ppo"]
    command += ["--actors", "2", "--frames", "0", "--out", str(out)]
    for setting in listening(hosts, certificate):
        command += ["--set", setting]
    assert run_command(command).returncode == 0
    run = RunDirectory(out)
    token, print_of = run_token(run), fingerprint_of(certificate[0])
    for role in ("learn", "export", "gate", "inference"):
        hosts.start("home", role, str(out))
    for place, name in enumerate(("near", "far")):
        words = ("--connect", f"{hosts.address('home')}:{PORT}")
        words += ("--fingerprint", print_of, "--index", str(place))
        folder = str(tmp_path / name)
        hosts.start(name, "actor", folder, *words, TENGEN_RUN_TOKEN=token)

    def frames() -> int:
        return read_actor_counts(run).get("num_rows", 0)

    def far_frames() -> int:
        return int.from_bytes((run.actors / "1").read_bytes()[:8], "little")

    wait_for(lambda: frames() > 4000 and far_frames() > 0)
    hosts.cut("far")
    time.sleep(5)
    count, before = far_frames(), frames()
    time.sleep(CUT_S)
    assert far_frames() == count
    assert frames() > before  # the other actor continued
    hosts.mend("far")
    wait_for(lambda: far_frames() > count)
    stop(run)
    for name in ("near", "far", "home"):
        for process in hosts.processes[name]:
            assert process.wait(900) == 0
