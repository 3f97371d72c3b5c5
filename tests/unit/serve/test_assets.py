"""The built page: made of web/, whole, and of nobody's server but its own."""

import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
WEB = ROOT / "web"
BUILT = Path(str(resources.files("tengen.serve") / "assets"))
NAMES = ("NOTICE.txt", "app.js", "icon.svg", "index.html", "style.css")


def test_all_files_are_in_the_package():
    assert {path.name for path in BUILT.iterdir()} == set(NAMES)


def test_the_page_asks_nobody_else():
    # Addresses of namespaces and of licences are names, which nobody asks.
    for name in ("app.js", "index.html", "style.css"):
        found = re.findall(
            r"(?:https?:)?//[a-z0-9.-]+\.[a-z]{2,}", (BUILT / name).read_text()
        )
        assert set(found) <= {"http://www.w3.org"}, name


def test_nothing_is_inline_that_its_policy_forbids():
    shell = (BUILT / "index.html").read_text()
    assert "<style" not in shell
    assert not re.search(r"<script(?![^>]*src=)", shell)
    assert not re.search(r"\son[a-z]+=", shell)


def test_licences_of_what_is_bundled_are_kept():
    notice = (BUILT / "NOTICE.txt").read_text()
    for name in ("preact", "uplot"):
        assert re.search(rf"^{name} \d", notice, re.M)
    assert notice.count("MIT License") == 2


def test_the_page_is_what_its_sources_make(tmp_path):
    if not (WEB / "node_modules").is_dir() or shutil.which("node") is None:
        pytest.skip("the page's packages are not installed; run make web")
    node = ["node", "build.mjs", str(tmp_path)]
    subprocess.run(node, cwd=WEB, check=True)
    for name in NAMES:
        built = (BUILT / name).read_bytes()
        assert built == (tmp_path / name).read_bytes(), f"{name}; run make web"
