"""The checks of ``make wheels`` on wheels with planted faults."""

import io
import platform
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
from scripts.wheels.contents import (
    BUILT,
    NEEDED,
    SOURCES,
    package_files,
    sdist_problems,
    wheel_problems,
)
from scripts.wheels.interpreters import find_interpreters, make_environment
from scripts.wheels.machine_code import (
    functions_above_baseline,
    instruction_problems,
    library_problems,
)

STABLE = "tengen_rl-0.1.0-cp312-abi3-manylinux_2_34_x86_64.whl"
OWN = "tengen_rl-0.1.0-cp311-cp311-manylinux_2_17_x86_64.manylinux_2_34_x86_64.whl"
SOURCE = frozenset({*NEEDED, "tengen/errors.py"})
ABOUT = ("tengen_rl-0.1.0.dist-info/METADATA", "tengen_rl-0.1.0.dist-info/RECORD")


@pytest.fixture
def make_wheel(tmp_path):
    """Makes a valid wheel, except for files added or left out."""

    def make(name=STABLE, extension="_core.abi3.so", added=(), without=()):
        names = {*SOURCE, *ABOUT, BUILT, f"tengen/{extension}", *added} - {*without}
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            for one in sorted(names):
                archive.writestr(one, "")
        return tmp_path / name

    return make


@pytest.fixture
def make_sdist(tmp_path):
    def make(added=(), without=()):
        path = tmp_path / "tengen_rl-0.1.0.tar.gz"
        names = {*SOURCES, *(f"src/{name}" for name in SOURCE), *added} - {*without}
        with tarfile.open(path, "w:gz") as archive:
            for name in names:
                archive.addfile(
                    tarfile.TarInfo(f"tengen_rl-0.1.0/{name}"), io.BytesIO()
                )
        return path

    return make


EXTENSION = "_core.cpython-312-x86_64-linux-gnu.so"


@pytest.mark.parametrize(
    ("made", "problems"),
    [
        ({}, []),
        ({"name": OWN, "extension": EXTENSION.replace("312", "311")}, []),
        (
            {"name": "tengen_rl-0.1.0-cp312-cp312-linux_x86_64.whl"},
            [
                "tag (cp312-cp312) must be cp311-cp311 or cp312-abi3",
                "platform (linux_x86_64) must be one of manylinux",
            ],
        ),
        (
            {"extension": EXTENSION},
            [
                r"extension (_core\.abi3\.so) is missing",
                f"file (tengen/{EXTENSION}) does not belong",
            ],
        ),
        *(
            ({"without": [name]}, [f"file ({name}) is missing"])
            for name in ("tengen/serve/assets/app.js", "tengen/py.typed", BUILT)
        ),
        *(
            ({"added": [name]}, [f"file ({name}) does not belong in a wheel"])
            for name in ("tests/conftest.py", "tengen/a.pyc", "tengen.libs/libgomp.so")
        ),
    ],
)
def test_what_is_wrong_with_a_wheel(make_wheel, made, problems):
    found = wheel_problems(make_wheel(**made), SOURCE)
    assert bool(found) == bool(problems)
    for problem in problems:
        assert any(line.startswith(problem) for line in found), found


def test_a_file_that_the_source_has_lost_too(make_wheel):
    """Built files are required even if they are missing in the source, too."""
    for name in (BUILT, "tengen/errors.py"):
        wheel = make_wheel(without=[name])
        missing = [f"file ({name}) is missing"]
        assert wheel_problems(wheel, SOURCE) == missing
        lost = missing if name == BUILT else []
        assert wheel_problems(wheel, SOURCE - {name}) == lost


def test_a_wheel_that_is_too_large(make_wheel):
    wheel = make_wheel()
    num_bytes = wheel.stat().st_size
    assert wheel_problems(wheel, SOURCE, num_bytes) == []
    (found,) = wheel_problems(wheel, SOURCE, num_bytes - 1)
    assert found.startswith("size (")


def test_an_sdist(make_sdist):
    assert sdist_problems(make_sdist()) == []
    assert package_files(make_sdist()) == SOURCE
    wanted = ["file (core/python/module.cc) is missing"]
    assert sdist_problems(make_sdist(without=["core/python/module.cc"])) == wanted
    for name in ("build/a.txt", "src/tengen/_core.abi3.so", "tests/__pycache__/a.py"):
        wanted = [f"file ({name}) does not belong in an sdist"]
        assert sdist_problems(make_sdist(added=[name])) == wanted


def test_the_instructions_of_a_disassembly():
    shown = """
0000000000001000 <_ZN6tengen4simd4avx23sumEv>:
    1000:\tvaddps %ymm0,%ymm1,%ymm2
0000000000002000 <plain>:
    2000:\taddps  %xmm0,%xmm1
    2004:\tverr   %ax
    2008:\tcall   3000 <vaddps>
0000000000003000 <leaked>:
    3000:\tmov    %rax,%rbx
    3004:\tshlx   %rax,%rbx,%rcx
    3008:\tvzeroupper
"""
    assert functions_above_baseline(shown.splitlines()) == {
        "_ZN6tengen4simd4avx23sumEv": "vaddps",
        "leaked": "shlx",
    }


CODE = """
namespace tengen::simd::avx2 {
__attribute__((target("avx2"))) void sum(float* x) {
  for (int i = 0; i < 64; ++i) x[i] += x[i + 64];
}
}
ATTRIBUTE void twice(float* x) { for (int i = 0; i < 64; ++i) x[i] *= 2; }
"""


@pytest.mark.skipif(
    shutil.which("objdump") is None or shutil.which("g++") is None,
    reason="binutils and g++ are not installed",
)
@pytest.mark.skipif(
    (sys.platform, platform.machine()) != ("linux", "x86_64"),
    reason="the baseline is that of Linux on x86-64",
)
def test_a_library_that_needs_more_than_the_baseline(tmp_path):
    """Real objects, so that the real output of the compiler and binutils is parsed."""
    for name, attribute in (("fine", ""), ("leaks", '__attribute__((target("avx")))')):
        source = tmp_path / f"{name}.cc"
        source.write_text(CODE.replace("ATTRIBUTE", attribute))
        command = ["g++", "-shared", "-fPIC", "-O3", "-Wl,--no-as-needed", str(source)]
        subprocess.run([*command, "-o", f"{tmp_path}/{name}.so"], check=True)
    assert library_problems(tmp_path / "fine.so") == [
        "library (libstdc++.so.6) is not every system's; link it into the extension"
    ]
    assert instruction_problems(tmp_path / "fine.so") == []
    (found,) = instruction_problems(tmp_path / "leaks.so")
    assert found.startswith("function (_Z5twicePf) must run on x86-64-v2 and has v")


def test_this_python_is_found():
    minor = sys.version_info.minor
    found = find_interpreters([sys.executable], [minor])
    assert list(found) == [minor]
    assert find_interpreters([], []) == {}


def test_an_environment_that_is_not_finished_is_none(tmp_path, monkeypatch):
    (this,) = find_interpreters([sys.executable], [sys.version_info.minor]).values()

    def interrupted(command, check):
        if "pip" in command:
            raise KeyboardInterrupt
        (tmp_path / "tools" / "bin").mkdir(parents=True)

    monkeypatch.setattr(subprocess, "run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        make_environment(this, tmp_path / "tools", ["build"])
    assert not (tmp_path / "tools").exists()
