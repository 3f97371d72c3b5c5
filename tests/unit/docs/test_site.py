"""The site builds in strict mode, so a missing link, anchor or page is an error.

Its reference pages are compared with the code.
"""

import dataclasses
import html
import importlib
import os
import pkgutil
import re
import subprocess
import sys

import pytest

import tengen
from tengen.bounds import bounds
from tengen.cli import COMMANDS
from tests.unit.docs.pages import PAGES, ROOT, name_of, prose_of

pytest.importorskip("mkdocs", reason="mkdocs is not installed; pip install '.[docs]'")
pytest.importorskip("material", reason="mkdocs-material is not installed")
pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed")

from scripts.pages import configs, interface, links

# Resources from another host, which a page must not load. Links are allowed.
FETCHED = re.compile(
    r"<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=\"(https?:)?//"
)
# Base classes and parts that pages of other configs document.
INSIDE = {
    "EnvironmentAgent",
    "EpsilonAgent",
    "ImageConfig",
    "MemoryConfig",
    "PlayedGate",
    "PolicyAgent",
    "QAgent",
    "SequenceAgent",
    "TargetAgent",
    "TeamAgent",
    "TeamItems",
}
# The dataclasses of bundled players' files.
OF_PLAYERS = {"Level", "Manifest", "RatedLevel"}


def build(out):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", out]
    # Otherwise mkdocs-material prints a coloured notice about MkDocs 2.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
    )


def text_of(page):
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))


@pytest.mark.slow
def test_the_site_is_whole(tmp_path):
    """One test for all checks, because a build takes ten CPU-seconds."""
    done = build(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    check_pages(tmp_path)
    check_links(tmp_path)
    check_references(tmp_path)


def check_pages(site):
    """Checks that the site has each page of docs/ and loads no external resource."""
    for page in PAGES:
        place = links.page_of(name_of(page))
        shown = site / place.replace("README.md", "index.md")
        assert shown.with_suffix(".html").exists(), place
    for shown in site.rglob("*.html"):
        assert FETCHED.search(shown.read_text()) is None, shown


def check_links(site):
    page = (site / "architecture.html").read_text()
    place = "howto/machines/roles"
    assert f'<a href="{place}.html"><code>docs/{place}.md</code></a>' in page
    assert 'href="results/strength.html"' in (site / "measured.html").read_text()


def check_references(site):
    """Checks that every command, setting and Python name is in the references."""
    folder = site / "reference"
    commands = text_of(folder / "commands.html")
    assert all(f"usage: tengen {one.name} " in commands for one in COMMANDS)
    settings = "".join(map(text_of, sorted((folder / "config").glob("*.html"))))
    for config in configs.documented_configs():
        names = [field.name for field in dataclasses.fields(config)]
        assert all(name in settings for name in (config.__name__, *names))
    assert re.search(r"gumbel_considered\s+whole number\s+16\s+1 to 65535", settings)
    for module in interface.INTERFACE:
        page = folder / "python" / f"{module.name.rpartition('.')[2]}.html"
        assert all(name in text_of(page) for name in module.names)


@pytest.mark.slow
def test_no_config_is_left_out():
    known = {config.__name__ for config in configs.documented_configs()}
    left = set()
    for module in pkgutil.walk_packages(tengen.__path__, "tengen."):
        if module.name.endswith("__main__"):
            continue
        try:
            imported = importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            # The module needs an extra that is not installed.
            if (error.name or "tengen").split(".")[0] == "tengen":
                raise
            continue
        for name, found in vars(imported).items():
            if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
                continue
            is_config = name.endswith("Config") or bounds(found)
            if found.__module__ == module.name and name[0] != "_" and is_config:
                left |= {name} - known
    assert left <= INSIDE | OF_PLAYERS


def test_links_lead_to_files():
    """Checks relative links between files of the checkout, without a site."""
    wrong = [
        f"{name_of(page)}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page))
        if ":" not in target and not target.startswith("#")
        if not (page.parent / target.partition("#")[0]).exists()
    ]
    assert wrong == []
