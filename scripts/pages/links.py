"""Links between files of the checkout, converted to links of the site.

Pages name files of the checkout by their path in backticks, such as
``docs/reference/store.md``. On the site, the name of a file that is a page becomes a
link.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable

# Files of the checkout that have another path in the site.
_MOVED = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "core/README.md": "core.md",
    "benchmarks/results": "results/index.md",
}
_FOLDERS = {"docs/": "", "benchmarks/results/": "results/"}

_FENCE = re.compile(r"(?ms)^(```.*?^```[^\n]*$)")
# A file name in backticks that is not the text of a link.
_NAMED = re.compile(r"(?<!\[)`([\w./]+/[\w.]+\.md|[A-Z]+\.md)`(?!\])")
_LINK = re.compile(r"(?<=\]\()([^)#\s:]+)(?=[)#])")


def page_of(path: str) -> str | None:
    """Returns the path of a checkout file in the site, or None if it is no page."""
    if path in _MOVED:
        return _MOVED[path]
    for folder, place in _FOLDERS.items():
        if path.startswith(folder):
            return place + path.removeprefix(folder)
    return None


def linked_page(markdown: str, page: str) -> str:
    """Returns a page in which names of other pages are links.

    Args:
        markdown: The page.
        page: The page's path in the site.
    """

    def link(match: re.Match[str]) -> str:
        target = page_of(match[1])
        if target is None or target == page:
            return match[0]
        return f"[`{match[1]}`]({_relative(target, page)})"

    return _outside_blocks(markdown, lambda text: _NAMED.sub(link, text))


def moved_links(markdown: str, source: str, page: str) -> str:
    """Returns a moved page with links adjusted to its new path.

    Args:
        markdown: The page, with links relative to its path in the checkout.
        source: The page's path in the checkout.
        page: The page's path in the site.
    """

    def link(match: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[1]))
        return _relative(page_of(path) or path, page)

    return _outside_blocks(markdown, lambda text: _LINK.sub(link, text))


def _relative(target: str, page: str) -> str:
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def _outside_blocks(markdown: str, change: Callable[[str], str]) -> str:
    parts = _FENCE.split(markdown)
    return "".join(part if part.startswith("```") else change(part) for part in parts)
