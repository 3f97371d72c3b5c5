"""What make setup and make test install, and when; a script stands for pip."""

import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ("preflight.py", "install.py")
HAS_GPU = any(Path("/dev").glob("nvidia*")) or shutil.which("nvidia-smi") is not None
without_gpu = pytest.mark.skipif(HAS_GPU, reason="there is a GPU")
# Says what it is called with, and answers as the variables of the test say.
STANDIN = """#!/bin/sh
shift 2
echo "$@" >> calls
case "$*" in
  *"config list"*) echo "$CONFIG" ;;
  *--index-url*) exit "${INDEX_CODE:-0}" ;;
esac
"""
CPU_INDEX = "--index-url https://download.pytorch.org/whl/cpu"


@pytest.fixture
def checkout(tmp_path):
    """A checkout with an environment whose Python is the stand-in."""
    (tmp_path / "scripts").mkdir()
    for name in SCRIPTS:
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    shutil.copy(ROOT / "constraints.txt", tmp_path)
    program = tmp_path / ".venv" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text(STANDIN)
    program.chmod(0o755)
    return tmp_path


def install(checkout, *words, **environment):
    """Runs install.py and returns what pip was asked for."""
    env = {**os.environ, "CONFIG": "", **environment}
    env = {name: text for name, text in env.items() if not name.startswith("PIP_")}
    command = [sys.executable, "scripts/install.py", *words]
    done = subprocess.run(command, cwd=checkout, env=env, capture_output=True)
    assert done.returncode == 0, done.stderr
    calls = checkout / "calls"
    lines = calls.read_text().splitlines()
    calls.unlink()
    return [line for line in lines if " install " in line]


def test_training_gets_no_packages_of_the_tests(checkout):
    (*_, line) = install(checkout)
    assert line.endswith("install --no-compile -c constraints.txt .[envs,serve]")
    assert {path.name for path in (checkout / ".venv").iterdir()} == {
        "bin",
        "installed",
    }
    assert closure("tengen-rl", {"envs", "serve"}) & TEST_PACKAGES == set()
    assert closure("tengen-rl", {"test"}) >= TEST_PACKAGES


# Those of pyproject.toml that are large or many, and what curves once needed.
TEST_PACKAGES = {
    *("pytest", "hypothesis", "ruff", "mypy", "cmake", "ninja", "mkdocs"),
    *("kubernetes-validate", "mlperf-logging", "pandas", "tensorboard", "grpcio"),
}


def closure(name, extras):
    """Returns the packages that a package needs, of those that are installed here."""
    found = set()
    waiting = [(name, frozenset(extras))]
    seen = set()
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        try:
            lines = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue
        found.add(canonicalize_name(name))
        for one in map(Requirement, lines):
            if one.marker is None or any(
                one.marker.evaluate({"extra": extra}) for extra in ("", *wanted)
            ):
                waiting.append((one.name, frozenset(one.extras)))
    return found


def test_the_packages_of_the_tests_build_nothing_again(checkout):
    (line,) = install(checkout, "test")
    assert line.endswith("install --no-compile -c constraints.txt tengen-rl[test]")
    assert (checkout / ".venv" / "test-packages").exists()
    assert not (checkout / ".venv" / "installed").exists()


@without_gpu
@pytest.mark.parametrize("code", ["0", "1"])
def test_without_a_gpu_torch_alone_comes_from_the_index_of_cpu_builds(checkout, code):
    """Or from pip's own, where that index is not reached."""
    torch, rest = install(checkout, INDEX_CODE=code)
    assert CPU_INDEX in torch
    assert "--no-deps" in torch
    assert torch.endswith(" torch")
    assert "index-url" not in rest
    assert rest.endswith(".[envs,serve]")


@pytest.mark.parametrize(
    "environment",
    [
        # An index that pip is configured for is the only one, and TORCH may be typed.
        {"CONFIG": "global.timeout='60'\nglobal.index-url='https://mirror/simple'"},
        {"CONFIG": "global.timeout='60'\nuser.extra-index-url='https://more/simple'"},
        {"CONFIG": "global.timeout='60'\n:env:.find-links='/opt/wheels'"},
        {"CONFIG": "global.timeout='60'\ninstall.no-index='true'"},
        {"TORCH": "default"},
    ],
)
def test_pips_own_index_is_the_only_one(checkout, environment):
    (line,) = install(checkout, **environment)
    assert "index-url" not in line


def test_a_machine_with_a_gpu_gets_the_torch_of_pips_own_index(checkout, tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "nvidia-smi").write_text("#!/bin/sh\n")
    (programs / "nvidia-smi").chmod(0o755)
    (line,) = install(checkout, PATH=f"{programs}:{os.environ['PATH']}")
    assert "index-url" not in line


@without_gpu
def test_a_torch_of_the_pinned_version_is_left_alone(checkout):
    text = (ROOT / "constraints.txt").read_text()
    (pin,) = re.findall(r"^torch==(.*)", text, re.M)
    site = checkout / ".venv" / "lib" / "python3.11" / "site-packages"
    (site / f"torch-{pin}+cpu.dist-info").mkdir(parents=True)
    assert len(install(checkout)) == 1
    (site / f"torch-{pin}+cpu.dist-info").rename(site / "torch-2.6.0+cpu.dist-info")
    assert len(install(checkout)) == 2


def test_a_tengen_of_the_old_name_goes(checkout):
    site = checkout / ".venv" / "lib" / "python3.11" / "site-packages"
    (site / "tengen-0.1.0.dist-info").mkdir(parents=True)
    first, *_ = (line for line in install_calls(checkout) if " config " not in line)
    assert first.endswith("uninstall --yes tengen")


def install_calls(checkout):
    command = [sys.executable, "scripts/install.py"]
    env = {**os.environ, "CONFIG": "", "TORCH": "default"}
    subprocess.run(command, cwd=checkout, env=env, check=True, capture_output=True)
    return (checkout / "calls").read_text().splitlines()


def test_no_pin_names_a_package_of_cuda():
    """An ordinary laptop's pip would else be held to gigabytes of them."""
    text = (ROOT / "constraints.txt").read_text()
    assert re.findall(r"^(?:nvidia|cuda|triton).*", text, re.M) == []


@pytest.fixture
def made(checkout):
    """Runs a target of make and returns what it had the two scripts do."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    for name in ("Makefile", "CMakeLists.txt", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, checkout)
    (checkout / "LICENSE").touch()
    for name in ("core", "src"):
        (checkout / name).mkdir()
    (checkout / "src" / "a.py").touch()
    (checkout / "scripts" / "preflight.py").write_text("")
    (checkout / "scripts" / "install.py").write_text(
        "import pathlib, sys\n"
        "part = ' '.join(sys.argv[1:]) or 'tengen'\n"
        "with open('calls', 'a') as file:\n"
        "    file.write(part + '\\n')\n"
        "stamp = {'tengen': 'installed', 'test': 'test-packages'}[part]\n"
        "pathlib.Path('.venv', stamp).touch()\n"
    )
    tengen = checkout / ".venv" / "bin" / "tengen"
    tengen.write_text("#!/bin/sh\n")
    tengen.chmod(0o755)

    def run(target):
        calls = checkout / "calls"
        calls.write_text("")
        command = ["make", "-C", str(checkout), f"PYTHON={sys.executable}", target]
        subprocess.run(command, check=True, capture_output=True)
        # The stand-in of Python writes there too, as which the tests run.
        return [word for word in calls.read_text().splitlines() if " " not in word]

    return run


def test_each_part_is_installed_once_and_again_when_it_changed(checkout, made):
    assert made("train") == ["tengen"]
    assert made("train") == []
    assert made("test") == ["test"]
    assert made("test") == made("train") == []
    outdate(checkout, "src/a.py")
    assert made("test") == ["tengen"]
    assert made("test") == made("train") == []
    outdate(checkout, "pyproject.toml")
    assert made("train") == ["tengen"]
    assert made("test") == ["test"]
    assert made("test") == made("train") == []


def outdate(checkout, name):
    """Makes the two stamps older than a file, and no older than all others."""
    for path in checkout.rglob("*"):
        os.utime(path, (1e9, 1e9))
    for stamp in ("installed", "test-packages"):
        os.utime(checkout / ".venv" / stamp, (1.1e9, 1.1e9))
    os.utime(checkout / name, (1.2e9, 1.2e9))


@pytest.mark.parametrize("target", ["lint", "docs", "native-tests", "fuzz", "format"])
def test_what_needs_the_packages_of_the_tests_gets_them(target, made, checkout):
    done = subprocess.run(
        ["make", "-n", "-C", str(checkout), target], capture_output=True, text=True
    )
    assert done.stdout.index("scripts/install.py\n") < done.stdout.index(
        "scripts/install.py test\n"
    )
