"""``launch.listen`` that cannot be used is refused before there is a run."""

from __future__ import annotations

import contextlib
import dataclasses
import socket
import warnings
from pathlib import Path

import pytest

from tengen import cli, launch
from tengen.errors import TengenWarning
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.recipes.call import Call, launch_for
from tests.integration.test_environment_roles import free_port

CERTIFICATE = Path(__file__).parents[1] / "store" / "tls_certificate.pem"


@pytest.fixture
def refused(refused_line):
    """Runs a call of ``train`` that is refused; returns its line."""
    return lambda *words: refused_line("train", *words, "--launch", "local")


@pytest.fixture
def port():
    return free_port()


@contextlib.contextmanager
def taken(port):
    with socket.create_server(("127.0.0.1", port)):
        yield


def listen(port, *more):
    settings = (f"launch.listen=127.0.0.1:{port}", *more)
    return [word for one in settings for word in ("--set", one)]


@pytest.mark.parametrize(
    ("offset", "service"), [(0, "store"), (1, "inference"), (2, "run"), (3, "learners")]
)
def test_a_port_that_is_taken(refused, port, offset, service):
    pytest.importorskip("gymnasium")
    words = listen(port, "launch.roles.learn.count=2")
    with taken(port + offset):
        line = refused("CartPole-v1", "--frames", "1000", *words)
    assert f"launch.listen (127.0.0.1:{port}) cannot be used for {service}" in line
    assert f"127.0.0.1:{port + offset}" in line
    assert "address already in use" in line


def test_the_port_of_a_second_server(refused, port):
    pytest.importorskip("gymnasium")
    words = listen(port, "launch.roles.inference.count=2")
    while True:
        with contextlib.suppress(OSError), taken(port + 4):
            line = refused("CartPole-v1", "--frames", "1000", *words)
            break
        words = listen(port := free_port(), "launch.roles.inference.count=2")
    assert "cannot be used for inference-1, " in line


def test_a_run_of_games_needs_the_port_of_the_run_alone(refused, port):
    made = override(make_config("tictactoe", None, None), listen(port)[1::2])
    with taken(port), taken(port + 1):
        launch.launcher_of("local").check_doors(made)
    with taken(port + 2):
        assert "used for run, " in refused("tictactoe", "--games", "10", *listen(port))


def test_a_host_that_nobody_knows(refused):
    words = ("--set", "launch.listen=no-such-host.invalid:7200")
    line = refused("tictactoe", "--games", "10", *words)
    assert "launch.listen (no-such-host.invalid:7200) cannot be used for run" in line


@pytest.mark.parametrize(
    ("certificate", "key"),
    [
        ("absent.pem", "absent_key.pem"),
        (str(CERTIFICATE), "absent_key.pem"),
        (str(CERTIFICATE), str(CERTIFICATE)),
    ],
)
def test_a_certificate_that_is_not_there(refused, port, certificate, key):
    words = listen(
        port, f"launch.certificate_file={certificate}", f"launch.key_file={key}"
    )
    line = refused("tictactoe", "--games", "10", *words)
    assert f"certificate_file ({certificate}) and its key cannot be used" in line


def test_a_run_that_is_only_made_needs_no_port(port, tmp_path, capsys):
    words = ["train", "tictactoe", "--games", "0", "--out", str(tmp_path / "run")]
    with taken(port + 2):
        assert cli.main([*words, *listen(port)]) == 0
    assert capsys.readouterr().err == ""


def games(*settings):
    return override(make_config("tictactoe", None, None), list(settings))


def test_roles_in_turns_say_that_nobody_comes_in(port):
    made = games(f"launch.listen=127.0.0.1:{port}")
    with taken(port + 2), pytest.warns(TengenWarning) as told:
        launch.launcher_of("inline").check_doors(made)
    assert "launch.listen" in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        launch.launcher_of("inline").check_doors(games())


class Cluster(launch.Launcher):
    package = "json"


def test_a_learner_somewhere_in_a_cluster_needs_no_port_here(port):
    with taken(port + 2):
        Cluster.check_doors(games(f"launch.listen=127.0.0.1:{port}"))


@pytest.mark.parametrize("actors", [1, 2])
def test_actors_that_are_asked_for_are_processes(actors, port, tmp_path, monkeypatch):
    pytest.importorskip("gymnasium")
    launched = []

    def train(*words):
        launched.extend(word.launch for word in words if isinstance(word, Call))
        return {}

    monkeypatch.setattr("tengen.recipes.run._train", train)
    words = ["train", "CartPole-v1", "--actors", str(actors), *listen(port)]
    assert cli.main([*words, "--frames", "9", "--out", str(tmp_path / "run")]) == 0
    assert launched == ["local"]


@pytest.mark.parametrize(
    ("has_driver", "seen", "launch"),
    [(True, "cuda:0", "local"), (True, "cpu", "inline"), (False, "cuda:0", "inline")],
)
def test_a_new_run_of_a_game_works_at_once_where_torch_sees_a_gpu(
    monkeypatch, has_driver, seen, launch
):
    monkeypatch.setattr("tengen.recipes.call.has_driver", lambda: has_driver)
    monkeypatch.setattr("tengen.inference.choice.default_devices", lambda: seen)
    assert games().inference.devices == "auto"
    assert launch_for(games()) == launch
    # OpenVINO computes on processors alone.
    assert launch_for(games("inference.backend=openvino")) == "inline"


def test_who_listens_or_has_actors_works_at_once():
    assert launch_for(games()) == "inline"
    assert launch_for(games("launch.listen=127.0.0.1:7200")) == "local"
    pytest.importorskip("gymnasium")
    steps = make_config("CartPole-v1", None, None)
    assert launch_for(steps) == "inline"
    assert launch_for(steps, has_actors=True) == "local"
    assert launch_for(override(steps, ["launch.roles.actor.count=2"])) == "local"
    on_gpu = dataclasses.replace(
        steps, inference=dataclasses.replace(steps.inference, devices="cuda:0")
    )
    assert launch_for(on_gpu) == "local"
