"""The built page matches web/, is complete, and contacts only its own server."""

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
    # Addresses of namespaces and licences are identifiers, which are never requested.
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


def contrast(one, other):
    """Returns the contrast ratio of two colours (WCAG 2, 1.4.3)."""

    def luminance(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        red, green, blue = (
            part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4
            for part in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_colours_are_told_apart(theme):
    """Requires a contrast of 4.5 for text and 3 for graphics."""
    pattern = r"--([\w-]+): light-dark\((#\w+), (#\w+)\)"
    found = re.findall(pattern, (WEB / "src" / "style.css").read_text())
    colour = {name: pair[theme] for name, *pair in found} | {"white": "#ffffff"}
    text = ["text page", "text card", "soft page", "soft card", "accent page"]
    text += ["accent card", "accent accent-soft", "page accent", "good card"]
    text += ["warn card", "bad card", "bad page", "wood-text wood", "white frame"]
    drawn = [f"line-{number} card" for number in range(1, 7)]
    drawn += ["wood-line wood", "hint wood", "hole frame"]
    for least, pairs in ((4.5, text), (3.0, drawn)):
        for pair in pairs:
            front, back = pair.split()
            assert contrast(colour[front], colour[back]) >= least, pair


def test_the_page_is_what_its_sources_make(tmp_path):
    if not (WEB / "node_modules").is_dir() or shutil.which("node") is None:
        pytest.skip("the page's packages are not installed; run make web")
    node = ["node", "build.mjs", str(tmp_path)]
    subprocess.run(node, cwd=WEB, check=True)
    for name in NAMES:
        built = (BUILT / name).read_bytes()
        assert built == (tmp_path / name).read_bytes(), f"{name}; run make web"
