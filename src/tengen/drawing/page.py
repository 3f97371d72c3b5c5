"""A page that needs nothing else: one style, tables with captions, no scripts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tengen.drawing.markup import Markup, element, text

__all__ = ["FRAGMENT_STYLE", "details", "page", "table"]

# Forbids whatever is not in the file, should anything that was read ever get through.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'"

_NUMBER = re.compile(r"-|([-+]?[0-9][0-9,.]*(e[-+]?[0-9]+)?[kMG]?( %)?)?")

_STYLE = """
:root{color-scheme:light dark;--ground:#ffffff;--ink:#1f2328;--faint:#d0d7de;
--soft:#59636e;--raised:#f6f8fa}
@media (prefers-color-scheme:dark){:root{--ground:#0d1117;--ink:#e6edf3;
--faint:#3d444d;--soft:#9198a1;--raised:#161b22}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:68rem;padding:1rem;background:var(--ground);
color:var(--ink);font:1rem/1.5 system-ui,sans-serif;overflow-wrap:break-word}
h1{font-size:1.6rem;line-height:1.25}h2{font-size:1.25rem;margin-top:2rem;
border-bottom:1px solid var(--faint)}h3{font-size:1rem;margin-bottom:.25rem}
.row{display:flex;flex-wrap:wrap;gap:1rem}
.row>*{flex:1 1 20rem;min-width:0;max-width:33rem}
.row>.narrow{flex:1 1 14rem;max-width:20rem}
figure{margin:0 0 1rem}figcaption,caption,.soft{color:var(--soft);font-size:.9rem}
.scroll{overflow-x:auto}table{border-collapse:collapse;width:100%}
caption{text-align:left;padding:.25rem 0}
th,td{text-align:left;vertical-align:top;padding:.2rem .6rem .2rem 0;
border-bottom:1px solid var(--faint)}
th[scope="row"]{white-space:nowrap}
td{overflow-wrap:anywhere;min-width:5rem}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
pre,code{font:.85rem/1.4 ui-monospace,monospace}
pre{background:var(--raised);padding:.6rem;overflow-x:auto}
.missing{border-left:.25rem solid #bf8700;padding-left:.6rem}
summary{cursor:pointer;padding:.25rem 0}
"""

FRAGMENT_STYLE = (
    "font-family:system-ui,sans-serif;display:flex;flex-wrap:wrap;gap:1rem;"
    "align-items:flex-start"
)
"""Of what stands in a page of somebody else, a notebook's cell."""


def page(title: str, body: Iterable[Markup]) -> bytes:
    """Returns a whole page in UTF-8.

    Args:
        title: Of the page.
        body: What it has, in order.
    """
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width,initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("title", text(title)),
        element("style", Markup(_STYLE)),
    )
    main = element("body", element("main", *body))
    shown = element("html", head, main, lang="en")
    return f"<!DOCTYPE html>\n{shown}\n".encode()


def table(
    caption: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    has_head: bool = True,
) -> Markup:
    """Returns a table that scrolls by itself where it is too wide.

    Args:
        caption: What it has.
        columns: Their names.
        rows: Values, the first of which names its row; columns of numbers stand to
            the right.
        has_head: Whether the names are shown above.
    """
    cells = [[str(value) for value in row] for row in rows]
    are_numbers = [
        has_head and bool(cells) and all(_NUMBER.fullmatch(row[i]) for row in cells)
        for i in range(len(columns))
    ]
    names = [
        element("th", text(name), scope="col", class_="number" if is_number else None)
        for name, is_number in zip(columns, are_numbers, strict=True)
    ]
    head = element("thead", element("tr", *names)) if has_head else Markup("")
    body = element("tbody", *(_row(row, are_numbers) for row in cells))
    shown = element("table", element("caption", text(caption)), head, body)
    return element(
        "div", shown, class_="scroll", tabindex=0, role="region", aria_label=caption
    )


def details(summary: str, *content: Markup) -> Markup:
    """Returns what is folded away until somebody asks for it."""
    return element("details", element("summary", text(summary)), *content)


def _row(cells: Sequence[str], are_numbers: Sequence[bool]) -> Markup:
    told = (
        element(
            "td" if i else "th",
            text(cell),
            scope=None if i else "row",
            class_="number" if is_number else None,
        )
        for i, (cell, is_number) in enumerate(zip(cells, are_numbers, strict=True))
    )
    return element("tr", *told)
