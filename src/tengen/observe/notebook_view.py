"""The view of a running call in a Jupyter notebook: a progress bar."""

from __future__ import annotations

import html
import importlib
import sys
import time
from typing import IO, Any

from tengen.observe.progress import Progress
from tengen.observe.view import View, describe

_REDRAW_S = 0.5


class NotebookView(View):
    """Shows a progress bar and the run's statistics, which are redrawn in place.

    The bar shows the share of the call's budget that is spent, and no share until that
    is known. Messages are printed below it.

    Args:
        title: The task and the agent.
        stream: The output stream for messages.
    """

    def __init__(self, title: str, stream: IO[str]) -> None:
        super().__init__(stream)
        self._title = title
        self._handle: Any = None
        self._drawn_s = -_REDRAW_S
        self._share: float | None = None
        self._text = "starting"

    def close(self) -> None:
        """Draws the last state, and closes the view."""
        self._draw()
        super().close()

    def starting(self, what: str) -> None:
        """Shows the current step of the start-up below an empty bar."""
        self._text = f"starting: {what}"
        self._draw()

    def update(self, progress: Progress) -> None:
        """Redraws the bar, at most twice a second."""
        if progress.eta_s is not None:
            whole_s = max(1e-9, progress.elapsed_s + progress.eta_s)
            self._share = progress.elapsed_s / whole_s
        elif self._share is not None:
            self._share = 1.0  # the budget is spent
        told = [f"{name} {text}" for name, text in describe(progress)]
        self._text = " | ".join([*told, *filter(None, [progress.verdict])])
        if time.monotonic() - self._drawn_s >= _REDRAW_S:
            self._draw()

    def generation(self, progress: Progress) -> None:
        """Shows a finished generation in the bar."""
        self.update(progress)

    def _draw(self) -> None:
        self._drawn_s = time.monotonic()
        known = self._share is not None
        percent = f"{self._share:.0%}" if known else ""
        value = f' value="{self._share:.3f}"' if known else ""
        title, text = html.escape(self._title), html.escape(self._text)
        content = {
            "text/plain": f"{self._title} {percent} {self._text}",
            "text/html": f'<div style="font-family: sans-serif"><b>{title}</b> '
            f'<progress{value} style="width: 50%"></progress> {percent}'
            f"<br><small>{text}</small></div>",
        }
        if self._handle is None:
            display = importlib.import_module("IPython.display").display
            self._handle = display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)


def is_in_notebook() -> bool:
    """Returns whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
