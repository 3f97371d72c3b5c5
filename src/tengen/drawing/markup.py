"""Markup of HTML and SVG, in which no text from elsewhere can be an element."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import NewType

__all__ = ["FRAGMENT_STYLE", "Markup", "element", "table", "text"]

Markup = NewType("Markup", str)
"""Elements and escaped text. Made by the functions here alone."""

FRAGMENT_STYLE = (
    "font-family:system-ui,sans-serif;display:flex;flex-wrap:wrap;gap:1rem;"
    "align-items:flex-start"
)
"""The style of an element in a page of somebody else, such as a notebook's cell."""

# What HTML forbids or hides: control characters, and marks that turn the order of what
# stands beside them.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_SHOWN = "\N{REPLACEMENT CHARACTER}"


def text(value: object) -> Markup:
    """Returns any value's text, escaped for content and for attributes in quotes.

    What cannot be shown, control characters and halves of surrogate pairs, becomes the
    replacement character.
    """
    shown = str(value).encode("utf-8", "replace").decode("utf-8")
    return Markup(html.escape(_HIDDEN.sub(_SHOWN, shown)))


def element(name: str, /, *children: Markup, **attributes: object) -> Markup:
    """Returns an element.

    Args:
        name: Of the element; never what came from a file.
        children: Its content in order.
        **attributes: Values by name; ``_`` in a name stands for ``-``, one at its end
            for none. Numbers are rounded to two digits, None is left out.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(_number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{''.join(children)}</{name}>")


def _number(value: object) -> object:
    if not isinstance(value, float):
        return value
    return f"{value:.2f}".rstrip("0").rstrip(".")


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> Markup:
    """Returns a table that scrolls by itself where it is too wide.

    Args:
        caption: What it has.
        columns: Their names.
        rows: Values, the first of which names its row.
    """
    head = [element("th", text(name), scope="col") for name in columns]
    body = [
        element(
            "tr",
            element("th", text(first), scope="row"),
            *(element("td", text(cell)) for cell in cells),
        )
        for first, *cells in rows
    ]
    shown = element(
        "table",
        element("caption", text(caption)),
        element("thead", element("tr", *head)),
        element("tbody", *body),
    )
    return element("div", shown, style="overflow-x:auto", role="region", tabindex=0)
