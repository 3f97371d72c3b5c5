"""Self-play hosts without the run directory are killed and disconnected."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tengen.run import RunDirectory, find_files, read_mirrors, run_token
from tests.faults.role_processes import (
    GAMES,
    Game,
    RoleProcesses,
    check_learner,
    games_in_journals,
    games_in_segments,
    make_run,
)
from tests.integration.runs import wait_for

SERVICE = 2  # offset of the run service's port from launch.listen


class Road:
    """A TCP proxy to the host that can drop all data."""

    def __init__(self, host_port: int) -> None:
        self._host_port = host_port
        self.is_cut = threading.Event()
        self._bound = socket.create_server(("127.0.0.1", 0))
        self.port = self._bound.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._bound.accept()
                far = None
                with contextlib.suppress(OSError):
                    far = socket.create_connection(("127.0.0.1", self._host_port))
                if far is None:
                    near.close()
                    continue
                for pair in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=pair, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.is_cut.is_set():
                    continue  # drops the data
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._bound.close()


class FarPlay:
    """A self-play process on a mirror, which reaches the run only through a proxy."""

    def __init__(self, folder: Path, road: Road, token: str) -> None:
        self.folder = folder
        self._address = f"127.0.0.1:{road.port - SERVICE}"
        self._env = {**os.environ, "TENGEN_RUN_TOKEN": token}
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "tengen", "selfplay", str(self.folder)]
        command += ["--connect", self._address, "--threads", "1"]
        with open(f"{self.folder}.log", "ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=log, env=self._env
            )

    @property
    def said(self) -> str:
        return Path(f"{self.folder}.log").read_text()

    def durable(self) -> dict[Game, str]:
        run = RunDirectory(self.folder)
        games = [*games_in_journals(run), *games_in_segments(run)]
        return {game: content for _, game, content in games}

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def free_ports() -> int:
    """Returns the first of three consecutive free ports."""
    for port in range(21000 + os.getpid() % 9000, 60000, 3):
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for one in range(port, port + 3):
                held.enter_context(socket.create_server(("127.0.0.1", one)))
            return port
    raise AssertionError("no ports")


@pytest.fixture
def far_play(tmp_path: Path) -> Iterator[list[FarPlay]]:
    processes: list[FarPlay] = []
    yield processes
    for one in processes:
        one.kill()


def sealed_by(run: RunDirectory, far: FarPlay, suffix: str = "npz") -> int:
    """Returns the number of a mirror's sealed, or claimed, generations at the host."""
    path = far.folder / "mirror.json"
    mirror = path.read_text() if path.exists() else ""
    for record in read_mirrors(run):
        if record.mirror in mirror:
            writer = run.experience / f"selfplay-{record.index}"
            return len(find_files(writer, f"*/*.{suffix}"))
    return 0


@pytest.mark.slow
def test_games_come_once_from_hosts_that_are_killed_and_cut_off(
    tmp_path: Path, far_play: list[FarPlay]
) -> None:
    port = free_ports()
    run = make_run(tmp_path / "run", f"launch.listen=127.0.0.1:{port}")
    token = run_token(run)
    roads = [Road(port + SERVICE) for _ in range(2)]
    host = RoleProcesses(run, ("learn", "export", "gate"))
    try:
        far_play += [
            FarPlay(tmp_path / f"far-{place}", road, token)
            for place, road in enumerate(roads)
        ]
        first, second = far_play
        wait_for(lambda: all(sealed_by(run, far) >= 1 for far in far_play))
        # A mirror claims numbers for an hour, over 100 of these small generations.
        wait_for(lambda: sealed_by(run, second, "journal") > 100)
        # A mirror sends one request at a time, so when it sends games again it has
        # received the claimed numbers.
        num_here = sealed_by(run, second)
        wait_for(lambda: sealed_by(run, second) > num_here)
        durable = first.durable()
        first.kill()
        durable |= first.durable()
        first.start()
        # The second mirror is disconnected and the learner killed; self-play continues.
        roads[1].is_cut.set()
        num_here = sealed_by(run, second)
        folder = RunDirectory(second.folder)

        def newest() -> int:
            return max(int(p.stem) for p in find_files(folder.experience, "*/*/*.npz"))

        num_before = newest()
        host.kill(0)
        wait_for(lambda: newest() > num_before)
        durable |= second.durable()
        assert sealed_by(run, second) == num_here
        roads[1].is_cut.clear()
        before = sealed_by(run, first)
        wait_for(lambda: sealed_by(run, second) > num_here + 1)
        wait_for(lambda: sealed_by(run, first) > before)
        # The first mirror is lost for good; the games that it had sent must remain.
        sent = {game for _, game, _ in games_in_segments(run)}
        first.kill()
        run.request_stop()
        assert second.process.wait(900) == 0, second.said
        assert "answers again" in second.said
        durable |= second.durable()
        assert host.codes() == [0, 0, 0]
    finally:
        host.close()
        for road in roads:
            road.close()
    found: dict[Game, str] = {}
    by_generation: dict[int, list[int]] = {}
    for _, game, content in games_in_segments(run):
        assert game not in found, "twice"
        found[game] = content
        by_generation.setdefault(game[0], []).append(game[1])
    for indices in by_generation.values():
        assert indices == list(range(GAMES))
    assert sent <= found.keys()
    # The run has all games of the second host, or that host says that some stay there.
    here = {**found, **{game: content for _, game, content in games_in_journals(run)}}
    if "unsent files stay" in second.said:
        here = second.durable() | here
    for game, content in second.durable().items():
        assert here[game] == content
    for game, content in durable.items():
        assert here.get(game, content) == content
    assert check_learner(run) > 0
