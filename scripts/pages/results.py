"""Pages of measured results: one per file of benchmarks/results, and a list."""

from __future__ import annotations

import re
from pathlib import Path

FOLDER = "results"
"""Folder of the pages in the site."""

_HEAD = """# All results

The files of `benchmarks/results`, each with the commands, commits and machines of its
figures.

| page | commits that it names |
|---|---|
"""
_COMMIT = re.compile(r"\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7}\b")
_MOST_COMMITS = 6


def result_pages(root: Path) -> dict[str, str]:
    """Returns the pages in Markdown, by their file names.

    Args:
        root: Root folder of the checkout.
    """
    files = sorted((root / "benchmarks" / "results").glob("*.md"))
    pages = {path.name: path.read_text() for path in files}
    rows = [_row(name, text) for name, text in pages.items()]
    return {"index.md": _HEAD + "".join(rows), **pages}


def _row(name: str, text: str) -> str:
    title = text.splitlines()[0].removeprefix("# ")
    commits = list(dict.fromkeys(_COMMIT.findall(text)))
    shown = ", ".join(f"`{commit}`" for commit in commits[:_MOST_COMMITS])
    more = ", ..." if len(commits) > _MOST_COMMITS else ""
    return f"| [{title}]({name}) | {shown}{more} |\n"
