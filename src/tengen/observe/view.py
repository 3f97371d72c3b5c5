"""The view of a running call: a live panel, a bar in a notebook, or plain lines."""

from __future__ import annotations

import html
import importlib
import os
import sys
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any, Self

from tengen.closable import Closable
from tengen.observe.progress import Progress
from tengen.observe.progress_line import ProgressLine

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

OnProgress = Callable[[Progress], bool | None]
"""Called with a run's progress; returns False to end the call with everything saved."""

_NUM_RATINGS = 10
_REDRAW_S = 0.5
_OF_MPIRUN = "OMPI_COMM_WORLD_RANK"


class View(Closable):
    """Shows the runner's reports as plain lines. Not thread-safe.

    Prints a line for each start-up step and each generation. Calls return quickly.
    ``with make_view(...) as view:`` opens and closes the view.
    """

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def close(self) -> None:
        """Closes the view; the last state stays visible. A second call does nothing."""
        self._stream.flush()

    def starting(self, what: str) -> None:
        """Shows the current step of the start-up, such as "compiling the network"."""
        print(f"starting: {what}", file=self._stream, flush=True)

    def update(self, progress: Progress) -> None:
        """Shows the run's progress; may be called often. A plain view shows nothing."""

    def generation(self, progress: Progress) -> None:
        """Shows a finished generation."""
        print(plain_line(progress), file=self._stream, flush=True)

    def message(self, text: str) -> None:
        """Prints a line that stays visible, also after the view is closed."""
        print(text, file=self._stream, flush=True)


def make_view(title: str, stream: IO[str] | None = None) -> View:
    """Returns a live view on a terminal, a bar in a notebook, else a plain view.

    Args:
        title: The task and the agent, such as ``gomoku/9 by alphazero``.
        stream: The output stream; None for stdout.
    """
    stream = stream or sys.stdout
    # mpirun gives each rank a terminal, even if mpirun's own output goes to a file.
    if _is_in_notebook():
        return _NotebookView(title, stream)
    is_live = stream.isatty() and _OF_MPIRUN not in os.environ
    return _LiveView(title, stream) if is_live else View(stream)


def watched(view: View, on_progress: OnProgress, stop: Callable[[], None]) -> View:
    """Returns a view that also calls a function with each progress.

    Args:
        view: The view that shows the reports.
        on_progress: Called with the progress; if it returns False, calls ``stop``.
        stop: Ends the run.
    """
    return _WatchedView(view, on_progress, stop)


class _WatchedView(View):
    def __init__(
        self, view: View, on_progress: OnProgress, stop: Callable[[], None]
    ) -> None:
        self._view = view
        self._on_progress = on_progress
        self._stop = stop

    def close(self) -> None:
        self._view.close()

    def starting(self, what: str) -> None:
        self._view.starting(what)

    def message(self, text: str) -> None:
        self._view.message(text)

    def update(self, progress: Progress) -> None:
        self._view.update(progress)
        self._tell(progress)

    def generation(self, progress: Progress) -> None:
        self._view.generation(progress)
        self._tell(progress)

    def _tell(self, progress: Progress) -> None:
        if self._on_progress(progress) is False:
            self._stop()


def describe(progress: Progress) -> list[tuple[str, str]]:
    """Returns a run's known statistics as (name, text) pairs, in display order."""
    # Generations are for games; environments have turns.
    has_games = progress.num_games is not None or progress.num_episodes is None
    texts: list[tuple[str, str | None]] = [
        ("generation" if has_games else "turns", f"{progress.generation}"),
        ("stage", progress.stage or None),
        ("games", _shown(progress.num_games, "{:,}")),
        ("episodes", _shown(progress.num_episodes, "{:,}")),
        (
            "rows/s" if has_games else "frames/s",
            _rate(progress.rows_per_s, progress.acting_rows_per_s),
        ),
        (
            "evaluations/s",
            _rate(progress.evaluations_per_s, progress.acting_evaluations_per_s),
        ),
        ("cache hits", _shown(progress.cache_hit_share, "{:.0%}")),
        ("batch fill", _shown(progress.batch_fill, "{:.0%}")),
        ("simulation", _shown(progress.simulation_share, "{:.0%}")),
        ("waits", _waits(progress)),
        ("servers", _servers(progress)),
        ("steps", _shown(progress.num_steps, "{:,}")),
        ("loss", _shown(progress.loss, "{:.3f}")),
        ("learners", _shown(progress.num_learners, "{}")),
        ("lag", _shown(progress.lag_steps, "{:.1f} steps")),
        ("return", _shown(progress.mean_return, "{:.1f}")),
        ("rating", _rating(progress)),
        ("elapsed", _clock(progress.elapsed_s)),
        ("ETA", None if progress.eta_s is None else _clock(progress.eta_s)),
    ]
    return [(name, text) for name, text in texts if text is not None]


def plain_line(progress: Progress) -> str:
    """Returns one generation as one line, ``generation 3 | games 128 | ...``.

    For environments, the line shows the turns so far, ``turns 3 | episodes 128 | ...``.
    """
    fields = [f"{name} {text}" for name, text in describe(progress)]
    return " | ".join([*fields, *([progress.verdict] if progress.verdict else [])])


class _LiveView(View):
    """A view as a panel that is redrawn in place, including the most recent ratings.

    Before the first update, the view is a progress line.
    """

    def __init__(self, title: str, stream: IO[str]) -> None:
        super().__init__(stream)
        self._title = title
        self._line = ProgressLine("starting", stream)
        self._ratings: list[float] = []
        self._progress: Progress | None = None
        self._live: Live | None = None

    def __enter__(self) -> Self:
        self._line.__enter__()
        return self

    def close(self) -> None:
        self._line.__exit__()
        if self._live is not None:
            self._live.stop()

    def starting(self, what: str) -> None:
        self._line.tell(f"starting: {what}")

    def update(self, progress: Progress) -> None:
        self._progress = progress
        if self._live is None:
            self._live = self._panel()

    def generation(self, progress: Progress) -> None:
        self.update(progress)
        if progress.rating is not None:
            self._ratings.append(progress.rating)

    def message(self, text: str) -> None:
        if self._live is None:
            self._line.leave(text, self._stream)
            return
        # Do not wrap text, because a command broken into two lines cannot be copied.
        self._live.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def _panel(self) -> Live:
        """Replaces the start-up line with the panel, and returns the panel."""
        # Import rich only here, because it takes 0.1 s and plain views do not need it.
        from rich.console import Console
        from rich.live import Live

        self._line.__exit__()
        live = Live(
            console=Console(file=self._stream),
            get_renderable=self._render,
            refresh_per_second=4,
            redirect_stderr=False,
        )
        live.start()
        return live

    def _render(self) -> RenderableType:
        from rich.columns import Columns
        from rich.console import Group
        from rich.panel import Panel
        from rich.text import Text

        assert self._progress is not None
        fields = [
            Text.assemble((f"{name} ", "dim"), (text, "bold"))
            for name, text in describe(self._progress)
        ]
        parts: list[RenderableType] = [Columns(fields, padding=(0, 3), equal=True)]
        if len(self._ratings) > 1:
            shown = self._ratings[-_NUM_RATINGS:]
            curve = " -> ".join(f"{rating:.0f}" for rating in shown)
            parts.append(Text.assemble(("ratings ", "dim"), (curve, "cyan")))
        if self._progress.verdict:
            parts.append(Text(self._progress.verdict, "yellow"))
        return Panel(Group(*parts), title=self._title)


class _NotebookView(View):
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


def _is_in_notebook() -> bool:
    """Returns whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


def _shown(value: float | None, form: str) -> str | None:
    return None if value is None else form.format(value)


def _rate(of_call: float | None, acting: float | None) -> str | None:
    """Returns the rate over the complete call and the rate while acting, as text."""
    told = [
        text
        for text in (
            _shown(of_call, "{:,.0f}"),
            _shown(acting, "({:,.0f} while acting)"),
        )
        if text is not None
    ]
    return " ".join(told) or None


def _waits(progress: Progress) -> str | None:
    shares = {
        "actors": progress.actor_wait_share,
        "inference": progress.inference_wait_share,
        "learner": progress.learner_wait_share,
    }
    told = [
        f"{name} {share:.0%}" for name, share in shares.items() if share is not None
    ]
    return ", ".join(told) or None


def _servers(progress: Progress) -> str | None:
    """Returns each inference server's load as text; None unless there are several."""
    if len(progress.servers) < 2:
        return None
    return ", ".join(
        f"{one.server} on {one.host} {one.rows_per_s:,.0f} rows/s "
        f"(batch fill {one.batch_fill:.0%}, busy {one.busy:.0%})"
        for one in progress.servers
    )


def _rating(progress: Progress) -> str | None:
    if progress.rating is None:
        return None
    if progress.rating_error is None:
        return f"{progress.rating:.0f}"
    return f"{progress.rating:.0f} +- {progress.rating_error:.0f}"


def _clock(seconds: float) -> str:
    minutes, left_s = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{left_s:02}" if hours else f"{minutes}:{left_s:02}"
