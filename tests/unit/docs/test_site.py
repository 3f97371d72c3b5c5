"""The site is built, strictly: a link, an anchor or a page that is not there fails.

What it has is compared with the code that its references are made of.
"""

from __future__ import annotations

import dataclasses
import html
import importlib
import inspect
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tengen
from tengen.bounds import bounds
from tengen.cli import COMMANDS
from tests.unit.docs.pages import PAGES, ROOT, name_of, prose_of

pytest.importorskip("mkdocs", reason="mkdocs is not installed; pip install '.[docs]'")
pytest.importorskip("material", reason="mkdocs-material is not installed")
pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed")

from scripts.pages import configs, interface, links

# What a page may have from another host: nothing. Links may go there.
FETCHED = re.compile(
    r"<(?:script|img|link|iframe|source)\b[^>]*\b(?:src|href)=\"(https?:)?//"
)
# Parts of other configs, which stand on their pages; what nobody can set by itself.
INSIDE = {
    "EnvironmentAgent",
    "ImageConfig",
    "MemoryConfig",
    "PlayedGate",
    "PolicyAgent",
    "QAgent",
}
# Of bundled players' files.
OF_PLAYERS = {"Level", "Manifest", "RatedLevel"}
# Of programs that use the store's Python alone.
OF_PYTHON = {"DiskConfig"}


def build(folder: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", out]
    # Else it tells in colours of programs that come after it.
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=1200,
    )


def text_of(page: Path) -> str:
    return html.unescape(re.sub(r"<[^>]+>", "", page.read_text()))


@pytest.mark.slow
def test_the_site_is_whole(tmp_path: Path) -> None:
    """One test, for a build takes ten seconds of a processor."""
    done = build(ROOT, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    check_pages(tmp_path)
    check_links(tmp_path)
    check_commands(tmp_path)
    check_settings(tmp_path)
    check_interface(tmp_path)


def check_pages(site: Path) -> None:
    """Each page of docs/ is one of the site, and none fetches anything."""
    for page in PAGES:
        place = links.page_of(name_of(page))
        assert place is not None
        shown = site / place.replace("README.md", "index.md")
        assert shown.with_suffix(".html").exists(), place
    for shown in site.rglob("*.html"):
        assert FETCHED.search(shown.read_text()) is None, shown


def check_links(site: Path) -> None:
    page = (site / "architecture.html").read_text()
    place = "howto/machines/roles"
    assert f'<a href="{place}.html"><code>docs/{place}.md</code></a>' in page
    assert 'href="results/strength.html"' in (site / "measured.html").read_text()


def check_commands(site: Path) -> None:
    text = text_of(site / "reference" / "commands.html")
    for command in COMMANDS:
        assert f"usage: tengen {command.name} " in text
    assert "--simulations N" in text


def check_settings(site: Path) -> None:
    folder = site / "reference" / "config"
    text = "".join(map(text_of, sorted(folder.glob("*.html"))))
    for config in configs.documented_configs():
        assert config.__name__ in text
        for field in dataclasses.fields(config):
            assert field.name in text, f"{config.__name__}.{field.name}"
    search = text_of(folder / "agent.html")
    assert re.search(r"gumbel_considered\s+whole number\s+16\s+1 to 65535", search)


def check_interface(site: Path) -> None:
    for module in interface.INTERFACE:
        name = module.name.rpartition(".")[2]
        text = text_of(site / "reference" / "python" / f"{name}.html")
        loaded = importlib.import_module(module.name)
        for name in module.names:
            shown = inspect.getdoc(getattr(loaded, name)) or ""
            assert f"{name}" in text, f"{module.name}.{name}"
            # The first line, but for what Markdown takes away.
            first = re.split(r"[`*_]", shown)[0].strip().splitlines()
            assert first == [] or first[0] in text, f"{module.name}.{name}"


@pytest.mark.slow
def test_no_config_is_left_out() -> None:
    known = {config.__name__ for config in configs.documented_configs()}
    left = set()
    for module in pkgutil.walk_packages(tengen.__path__, "tengen."):
        if module.name.endswith("__main__"):
            continue
        try:
            imported = importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            # Of an extra that is not installed here.
            if (error.name or "tengen").split(".")[0] == "tengen":
                raise
            continue
        for name, found in vars(imported).items():
            if not (isinstance(found, type) and dataclasses.is_dataclass(found)):
                continue
            is_config = name.endswith("Config") or bounds(found)
            if found.__module__ == module.name and name[0] != "_" and is_config:
                left |= {name} - known
    assert left <= INSIDE | OF_PLAYERS | OF_PYTHON


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_to_files(page: Path) -> None:
    """In the checkout too, where no site is built."""
    wrong = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page)):
        place = target.partition("#")[0]
        if ":" in target or not place:
            continue
        if not (page.parent / place).exists():
            wrong.append(target)
    assert wrong == []


def test_a_link_that_leads_nowhere_ends_the_build(tmp_path: Path) -> None:
    """By the settings of the site, without what is made of code."""
    settings = (ROOT / "mkdocs.yml").read_text()
    validation = re.search(r"^validation:\n(?: .*\n)+", settings, re.M)
    assert validation is not None
    (tmp_path / "mkdocs.yml").write_text(f"site_name: a\n{validation[0]}")
    (tmp_path / "docs").mkdir()
    page = tmp_path / "docs" / "index.md"
    page.write_text("# A\n\n[here](#a)\n")
    assert build(tmp_path, tmp_path / "site").returncode == 0
    page.write_text("# A\n\n[a page](b.md), [a place](#b)\n")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "a link 'b.md'" in done.stderr
    assert "a link '#b'" in done.stderr
