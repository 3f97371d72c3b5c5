"""MkDocs hooks that add pages generated from the code and the results.

Run ``python -m mkdocs build`` from the root of the checkout, so that Python finds this
package.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from scripts.pages import configs, interface, links, results
from scripts.pages.commands import commands_page

_ROOT = Path(__file__).resolve().parents[2]

# Pages outside docs/.
_ELSEWHERE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "core/README.md")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages, and the pages outside docs/."""
    for place, content in _pages():
        files.append(File.generated(config, place, content=content))
    for path in sorted((_ROOT / "benchmarks" / "results").rglob("*.png")):
        place = links.page_of(path.relative_to(_ROOT).as_posix())
        assert place is not None, path
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(
    markdown: str, page: Page, config: MkDocsConfig, files: Files
) -> str:
    """Turns page names into links, and rewrites links to files outside docs/."""
    place = page.file.src_uri
    if page.file.generated_by is None:
        markdown = links.moved_links(markdown, f"docs/{place}", place)
    return links.linked_page(markdown, place)


def _pages() -> Iterator[tuple[str, str]]:
    for source in _ELSEWHERE:
        place = links.page_of(source)
        assert place is not None, source
        content = (_ROOT / source).read_text()
        yield place, links.moved_links(content, source, place)
    yield "reference/commands.md", commands_page()
    for folder, pages in (
        (configs.FOLDER, configs.config_pages()),
        (interface.FOLDER, interface.interface_pages()),
    ):
        for name, content in pages.items():
            yield f"{folder}/{name}", content
    for name, content in results.result_pages(_ROOT).items():
        source, place = f"benchmarks/results/{name}", f"{results.FOLDER}/{name}"
        yield place, links.moved_links(content, source, place)
