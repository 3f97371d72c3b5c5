"""The lines that tengen prints for pip install what they say, wherever it came from.

An index of a folder stands for the public one. It has another project's ``tengen``, a
newer ``tengen-rl`` of somebody else's, and the packages that extras name.
"""

import json
import re
import shlex
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tengen import distribution
from tengen.cli.doctor import EXTRAS
from tengen.distribution import DISTRIBUTION, pip_install, pip_install_extra

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# A package that no machine has, which an extra wants here.
WANTED = "package-of-nobody"


@pytest.fixture
def index(tmp_path):
    """A folder of wheels."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name, version in (("tengen", "0.1.6"), (DISTRIBUTION, "9.9"), (WANTED, "1.0")):
        stem = f"{name.replace('-', '_')}-{version}"
        about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        kind = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{stem}.dist-info/METADATA", about)
            wheel.writestr(f"{stem}.dist-info/WHEEL", kind)
            wheel.writestr(f"{stem}.dist-info/RECORD", "")
    return folder


@pytest.fixture(params=["checkout", "wheel"])
def origin(request, tmp_path):
    """A folder of installed packages with tengen's record, and what it came from."""
    site = tmp_path / "site"
    about = site / "tengen_rl-0.1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {DISTRIBUTION}\nVersion: 0.1.0\n"
        f'Provides-Extra: ray\nRequires-Dist: {WANTED}; extra == "ray"\n'
    )
    (about / "INSTALLER").write_text("pip\n")
    (about / "RECORD").write_text("tengen_rl-0.1.0.dist-info/METADATA,,\n")
    url = {"url": (tmp_path / "a.whl").as_uri(), "archive_info": {}}
    if request.param == "checkout":
        (tmp_path / "a checkout").mkdir()
        (tmp_path / "a checkout" / "constraints.txt").write_text(f"{WANTED}==1.0\n")
        url = {"url": (tmp_path / "a checkout").as_uri(), "dir_info": {}}
    (about / "direct_url.json").write_text(json.dumps(url))
    return site, request.param


def test_an_extra_is_added_to_the_tengen_that_is_here(index, origin, monkeypatch):
    site, kind = origin
    monkeypatch.syspath_prepend(str(site))
    line = pip_install_extra("ray")
    assert ("-c" in shlex.split(line)) == (kind == "checkout")
    report = dry_run(line, index, site)
    assert [one["metadata"]["name"] for one in report["install"]] == [WANTED]


def dry_run(line, index, site):
    """Runs a printed line as a shell does, but that pip installs nothing."""
    out = index / "report.json"
    line += f" --dry-run --no-index --find-links {index} --report {out}"
    done = subprocess.run(
        line,
        shell=True,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin", "HOME": str(index)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(out.read_text())


def test_the_line_calls_this_environments_own_pip(monkeypatch, tmp_path):
    monkeypatch.setattr(distribution, "checkout", lambda: None)
    program = tmp_path / "my env" / "bin" / "python"
    program.parent.mkdir(parents=True)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setenv("PATH", "")
    words = shlex.split(pip_install("numpy>=1"))
    assert words == [str(program), "-m", "pip", "install", "numpy>=1"]
    program.with_name("pip").touch(0o755)
    assert shlex.split(pip_install("a"))[0] == str(program.with_name("pip"))
    monkeypatch.chdir(tmp_path)
    assert shlex.split(pip_install("a"))[0] == "my env/bin/pip"
    monkeypatch.setenv("PATH", str(program.parent))
    assert pip_install("a") == "pip install a"


def test_pip_knows_tengen_by_a_name_of_its_own():
    assert metadata.metadata(DISTRIBUTION)["Name"] == PROJECT["name"] == DISTRIBUTION
    scripts = metadata.entry_points(group="console_scripts", name="tengen")
    assert "tengen.cli:main" in [script.value for script in scripts]


def test_every_line_for_pip_is_made_in_one_place():
    wrong = [
        f"{path.relative_to(ROOT)}: {line.strip()}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        if path.name != "distribution.py"
        for line in path.read_text().splitlines()
        if re.search(r"\bpip install\b|[\"'(` ]tengen\[", line)
    ]
    assert wrong == []


def test_no_page_names_the_project_that_has_the_name_on_the_index():
    folders = ("docs", "examples", "benchmarks", "deploy", "scripts")
    pages = [path for name in folders for path in (ROOT / name).rglob("*.*")]
    wrong, num_named = [], 0
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *pages):
        if path.suffix not in {".md", ".py", ".ipynb", ".yaml", ".sh"}:
            continue
        text = path.read_text()
        num_named += len(re.findall(r"pip install .*tengen-rl\[", text))
        found = re.findall(r"pip install (?:-\S+ )*['\"]?tengen(?![\w-]).*", text)
        wrong += [f"{path.relative_to(ROOT)}: {line}" for line in found]
    assert wrong == []
    assert num_named > 8


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_that_is_offered_is_one(extra):
    assert [Requirement(one) for one in PROJECT["optional-dependencies"][extra]]
