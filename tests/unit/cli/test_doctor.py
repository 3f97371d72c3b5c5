"""The report of ``tengen doctor`` on machines that lack something."""

import argparse
import importlib
import shutil
import sys
import tomllib
from collections import namedtuple
from pathlib import Path

import pytest

from tengen.cli import doctor
from tengen.cli.doctor import Finding
from tengen.distribution import pip_install, pip_install_extra
from tengen.inference import openvino_backend

ROOT = Path(__file__).resolve().parents[3]
Usage = namedtuple("Usage", "total used free")
# Extras for benchmarks, tests and the site, which users do not need.
NOT_TOLD = {"docs", "plots", "test"}


@pytest.fixture
def answers(monkeypatch):
    """Returns a function that replaces functions of a module."""

    def answer(module, **functions):
        for name, function in functions.items():
            monkeypatch.setattr(module, name, function)

    return answer


def absent(name):
    raise doctor.metadata.PackageNotFoundError(name)


def test_it_prints_a_line_a_check_and_the_fixes(capsys, answers):
    found = {
        "memory": Finding("0.0 GiB", "bad", "give more"),
        "[ray]": Finding("no ray", "absent", "pip install 'tengen-rl[ray]'"),
        "core": Finding("there"),
    }
    answers(doctor, examine=lambda: found)
    report = doctor.doctor(argparse.Namespace(json=False))
    assert capsys.readouterr().out.splitlines() == [
        "BAD memory  0.0 GiB",
        "            fix: give more",
        "--  [ray]   no ray",
        "            fix: pip install 'tengen-rl[ray]'",
        "ok  core    there",
    ]
    assert report["exit_code"] == 1
    assert report["checks"]["memory"] == {
        "ok": False,
        "state": "bad",
        "text": "0.0 GiB",
        "fix": "give more",
    }
    assert report["checks"]["[ray]"]["ok"]
    del found["memory"]
    assert doctor.doctor(argparse.Namespace(json=True))["exit_code"] == 0
    assert capsys.readouterr().out == ""


def test_a_machine_that_is_too_small(answers):
    answers(doctor, memory_limit_bytes=lambda: 2**20)
    answers(shutil, disk_usage=lambda path: Usage(64 << 20, 0, 2**20))
    found = doctor.check_machine()
    assert found["memory"].text == "0.0 GiB (at least 2)"
    assert {found[name].state for name in ("memory", "disk")} == {"bad"}
    assert found["shared memory"].state == "absent"
    assert "--shm-size" in found["shared memory"].fix


def test_the_cores_are_those_of_the_quota(answers):
    answers(doctor, quota_cores=lambda: 1.5)
    answers(doctor, available_cores=lambda: 1)
    assert "1 of " in doctor.cores().text
    assert "a CPU quota of 1.5" in doctor.cores().text


def test_the_kernels_and_why_no_others(answers):
    core = importlib.import_module("tengen._core")
    answers(core, kernel_name=lambda: "avx2")
    answers(doctor.platform, machine=lambda: "x86_64")
    has = {"avx2", "fma", "bmi1", "bmi2", "avx512f"}
    answers(doctor, cpu_features=lambda: frozenset(has))
    assert doctor.kernels().text == (
        "avx2: not avx512: the processor lacks avx512bw avx512dq avx512vl avx512cd; "
        "the processor has avx2 fma bmi1 bmi2"
    )


def test_it_survives_a_core_that_is_absent(monkeypatch, answers):
    monkeypatch.setitem(sys.modules, "tengen._core", None)
    answers(doctor, check_required=dict)
    found = doctor.examine()
    assert found["core"].state == "bad"
    assert "make setup" in found["core"].fix
    assert "device" not in found


def test_packages_that_are_absent_or_broken(monkeypatch, tmp_path):
    for name in ("numpy", "openvino"):
        monkeypatch.setitem(sys.modules, name, None)
    assert doctor.package("numpy").state == "bad"
    assert doctor.package("numpy").fix == pip_install("numpy")
    assert doctor.package("openvino").state == "absent"
    (tmp_path / "copiedlibrary.py").touch()
    (tmp_path / "brokenlibrary.py").write_text("raise OSError('libGL.so.1')")
    monkeypatch.syspath_prepend(tmp_path)
    broken = doctor.package("brokenlibrary")
    assert (broken.state, "libGL.so.1" in broken.text) == ("bad", True)
    assert doctor.package("copiedlibrary").state == "ok"


def test_extras_are_those_that_pip_knows(answers):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert set(doctor.EXTRAS) == set(extras) - NOT_TOLD
    wanted = [
        f"{text}; extra == '{name}'" for name, all_ in extras.items() for text in all_
    ]
    answers(doctor.metadata, requires=lambda name: wanted)
    there = {"gymnasium": "1.2", "starlette": "1", "uvicorn": "2"}

    def version(name):
        if name not in there:
            raise doctor.metadata.PackageNotFoundError(name)
        return there[name]

    answers(doctor.metadata, version=version)
    found = doctor.check_extras()
    assert found["[serve]"] == Finding("starlette 1, uvicorn 2: tengen serve")
    assert found["[atari]"] == Finding(
        "no ale-py: Atari games", "absent", pip_install_extra("atari")
    )


def test_an_extra_that_the_installed_tengen_has_not_is_told_as_such(answers):
    answers(doctor.metadata, requires=lambda name: ["numpy>=2"])
    found = doctor.check_extras()["[serve]"]
    assert found.state == "absent"
    assert found.text.startswith("not an extra of the installed tengen")
    assert found.fix.startswith("reinstall tengen")


def test_no_advice_brings_the_project_that_has_the_name_on_pypi(answers):
    answers(doctor.metadata, requires=absent)
    assert "pip install tengen" not in doctor.check_extras()["extras"].fix


@pytest.mark.parametrize(
    ("has", "native", "text", "fix"),
    [
        (True, ("fp32", "bf16", "int8"), "OpenVINO in fp32, bf16, int8; a run", ""),
        (True, ("fp32",), "OpenVINO in fp32; the processor has no native bf16 or", ""),
        (False, (), "torch, in fp32 or bf16", pip_install("openvino")),
    ],
)
def test_what_inference_computes_by(answers, has, native, text, fix):
    answers(openvino_backend, is_installed=lambda: has)
    answers(openvino_backend, supported_precisions=lambda: native)
    found = doctor.check_choices()["inference"]
    assert found.text.startswith(text)
    assert found.fix == fix


def test_a_gpu_that_torch_does_not_see(answers):
    answers(shutil, which=lambda name: f"/usr/bin/{name}")
    found = doctor.check_choices()["device"]
    assert found.state == "absent"
    assert found.text.startswith("cpu: there is a")
