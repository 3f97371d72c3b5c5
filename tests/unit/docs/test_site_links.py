"""Names of files and links, as they become in the site."""

from __future__ import annotations

import pytest
from scripts.pages.links import linked_page, moved_links, page_of


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("README.md", "index.md"),
        ("docs/store.md", "store.md"),
        ("docs/agents/README.md", "agents/README.md"),
        ("benchmarks/results/store.md", "results/store.md"),
        ("benchmarks/results", "results/index.md"),
        ("src/tengen/cli.py", None),
    ],
)
def test_where_a_file_is(path: str, place: str | None) -> None:
    assert page_of(path) == place


def test_a_name_is_a_link_outside_blocks_and_links() -> None:
    page = "`docs/go.md` [`docs/go.md`](x.md) `src/a.md`\n\n```\n`docs/go.md`\n```\n"
    shown = linked_page(page, "agents/ppo.md")
    assert shown.startswith("[`docs/go.md`](../go.md) [`docs/go.md`](x.md) `src/a.md`")
    assert shown.endswith("```\n`docs/go.md`\n```\n")
    assert linked_page("`docs/go.md`", "go.md") == "`docs/go.md`"


def test_links_of_a_page_that_is_moved() -> None:
    page = "[a](docs/go.md#rules) ![b](docs/images/b.svg) [c](https://d.org/e) [f](#g)"
    assert moved_links(page, "README.md", "index.md") == (
        "[a](go.md#rules) ![b](images/b.svg) [c](https://d.org/e) [f](#g)"
    )
    page = "[up](../../benchmarks/results/speed.md)"
    assert moved_links(page, "docs/agents/ppo.md", "agents/ppo.md") == (
        "[up](../results/speed.md)"
    )
