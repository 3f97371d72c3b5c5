"""Links and file names of pages, rewritten for the site."""

import pytest
from scripts.pages.links import linked_page, moved_links, page_of


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("README.md", "index.md"),
        ("docs/reference/store.md", "reference/store.md"),
        ("docs/agents/README.md", "agents/README.md"),
        ("benchmarks/results/store.md", "results/store.md"),
        ("benchmarks/results", "results/index.md"),
        ("src/tengen/cli/__init__.py", None),
    ],
)
def test_where_a_file_is(path, place):
    assert page_of(path) == place


def test_a_name_is_a_link_outside_blocks_and_links():
    name, block = "`docs/install.md`", "\n\n```\n`docs/install.md`\n```\n"
    shown = linked_page(f"{name} [{name}](x.md) `src/a.md`{block}", "agents/ppo.md")
    assert shown == f"[{name}](../install.md) [{name}](x.md) `src/a.md`{block}"
    assert linked_page(name, "install.md") == name


def test_links_of_a_page_that_is_moved():
    page = "[a](docs/install.md#b) ![b](docs/images/b.svg) [c](https://d.org/e) [f](#g)"
    assert moved_links(page, "README.md", "index.md") == (
        "[a](install.md#b) ![b](images/b.svg) [c](https://d.org/e) [f](#g)"
    )
    page = "[up](../../benchmarks/results/speed.md)"
    assert moved_links(page, "docs/agents/ppo.md", "agents/ppo.md") == (
        "[up](../results/speed.md)"
    )
