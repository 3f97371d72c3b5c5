"""Several inference servers of a run: their doors, ports and devices."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tengen.errors import RunError
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RunConfig
from tengen.roles import serving as role
from tengen.roles.doors import STORE, Connect, Doors, server_name, way_to
from tengen.run import RunDirectory, service_folder
from tengen.transport import NetAddress
from tests.refusals import refused

pytest.importorskip("gymnasium")


def config(*settings: str) -> RunConfig:
    return override(make_config("CartPole-v1", None, None), settings)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create_or_resume(tmp_path / "run")


def test_each_server_has_a_folder_a_port_and_an_endpoint(
    run: RunDirectory,
) -> None:
    launch = config("launch.listen=127.0.0.1:7000").launch
    connect = Connect(address="127.0.0.1:7000", token=32 * "0")
    names = [STORE, *map(server_name, (0, 1, 2, 63))]
    ports, folders = [], set()
    for name in names:
        doors = Doors(launch, run, name)
        assert doors.net is not None
        ports.append(NetAddress.parse(doors.net.listen).port)
        folders.add(doors.folder)
        # One that was told where the run is finds each without its endpoint.
        assert way_to(run, name, connect).address == f"tcp://127.0.0.1:{ports[-1]}"
        with refused(RunError, f"{name} (of "):
            way_to(run, name, None)
        doors.publish()
        assert way_to(run, name, None).address == str(service_folder(run, name))
    # Behind the first server's is another service's.
    assert ports == [7000, 7001, 7004, 7005, 7066]
    assert len(folders) == 5


def test_a_server_of_another_host_is_found_at_its_own_address(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = dataclasses.replace(
        config().launch,
        listen="0.0.0.0:7000",
        certificate_file=str(Path(__file__).parents[2] / "store/tls_certificate.pem"),
        key_file=str(Path(__file__).parents[2] / "store/tls_key.pem"),
    )
    for host, index in (("first", 0), ("second", 1)):
        monkeypatch.setattr("platform.node", lambda host=host: host)
        monkeypatch.setattr("tengen.run.endpoints._memory_id", lambda host=host: host)
        Doors(launch, run, server_name(index)).publish()
    # From the second host: its own by the folder, the other by its address.
    first, second = (way_to(run, server_name(index), None) for index in (0, 1))
    assert first.address == "tcp://first:7001"
    assert first.fingerprint is not None
    assert second.address == str(service_folder(run, server_name(1)))


@pytest.mark.parametrize(
    ("num_servers", "expected"),
    [
        (1, ["cuda:0,cuda:1,cuda:2"]),
        (2, ["cuda:0,cuda:2", "cuda:1"]),
        (3, ["cuda:0", "cuda:1", "cuda:2"]),
        (5, ["cuda:0", "cuda:1", "cuda:2", "cuda:0", "cuda:1"]),
    ],
)
def test_servers_divide_the_gpus(
    num_servers: int, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tengen.inference.config._num_gpus", lambda: 3)
    made = config(f"launch.roles.inference.count={num_servers}")
    inference = dataclasses.replace(made.inference, devices="cuda:0,cuda:1,cuda:2")
    made = dataclasses.replace(made, inference=inference)
    parts = [role._part_of(made, index).devices for index in range(num_servers)]
    assert parts == expected
    on_cpu = dataclasses.replace(
        made, inference=dataclasses.replace(inference, devices="cpu")
    )
    assert role._part_of(on_cpu, 0).devices == "cpu"
