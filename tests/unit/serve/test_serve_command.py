import json
import re
import signal
import subprocess
import sys
import urllib.request

import pytest

from tengen import cli
from tengen.distribution import pip_install_extra
from tests.unit.serve.made_runs import write_events


def refused(capsys, *argv):
    assert cli.main(["serve", *argv]) == 2
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1
    return said


def test_without_the_extra_one_line_names_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette", None)
    assert pip_install_extra("serve") in refused(capsys)


def test_what_cannot_be_served_is_one_line(capsys, tmp_path, site):
    assert "is not a run directory" in refused(capsys, str(tmp_path))
    assert "port (70000) must" in refused(capsys, "--port", "70000")
    assert "simulations (0) must" in refused(capsys, "--simulations", "0")
    assert "cannot be used" in refused(capsys, "--port", str(site.port))
    assert "cannot be used" in refused(capsys, "--host", "no.such.invalid")


def test_a_short_token_is_refused(capsys, monkeypatch):
    monkeypatch.setenv("TENGEN_SERVE_TOKEN", "short")
    said = refused(capsys, "--host", "0.0.0.0", "--port", "0")
    assert "TENGEN_SERVE_TOKEN" in said
    assert "short" not in said


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_the_command_serves_until_it_is_interrupted(tmp_path, publish_run, host):
    pytest.importorskip("uvicorn", reason="the extra serve is not installed")
    run = publish_run(tmp_path / "runs" / "tictactoe", "tictactoe", exports=False)
    run.write_run({"config": {"task": "tictactoe"}})
    write_events(run, range(1, 3)).close()
    process = subprocess.Popen(
        [
            *(sys.executable, "-P", "-m", "tengen", "serve"),
            *("--port", "0", "--host", host, "--json", "--quiet"),
        ],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = process.stdout.readline()
        found = re.fullmatch(
            r"1 run at http://[^:]+:(\d+)/(?:\?token=([\w-]+))? \(Ctrl-C ends\)\n", line
        )
        assert found, line + process.communicate(timeout=900)[1]
        port, token = found.groups()
        assert (token is None) == (host == "127.0.0.1")
        request = urllib.request.Request(f"http://127.0.0.1:{port}/api/runs")
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, timeout=900) as reply:
            assert json.loads(reply.read())[0]["id"] == "tictactoe"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=900)
    finally:
        process.kill()
    assert process.returncode == 130
    assert err == ""
    report = json.loads(out.splitlines()[-1])
    assert report["exit_code"] == 130
    assert "token" not in report["address"]
