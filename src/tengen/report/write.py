"""Writes a run as one HTML file: a page of ``tengen serve`` with embedded data."""

from __future__ import annotations

import argparse
import base64
import hashlib
import html
import json
import shlex
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from tengen import __version__
from tengen.config import from_dict
from tengen.errors import RunError, TengenError, TengenWarning, UsageError, os_reason
from tengen.evaluation import LadderConfig, run_ratings
from tengen.games import add_task_argument, check_typed, is_program, open_game
from tengen.observe import RunView
from tengen.observe.progress_line import ProgressLine
from tengen.observe.roles import has_actors, of_agent
from tengen.observe.status import read_status
from tengen.run import RunDirectory, check_new_file, check_no_mirror, publish_file
from tengen.search import PlayConfig
from tengen.serve.kept import (
    KeptGame,
    game_page,
    read_source,
    source_page,
    source_row,
    sources,
)
from tengen.serve.shown import run_page

REPORT_FILE = "report.html"
"""Default name of the report, in the run directory."""

# In URLs, the ID of the only run and of the only source of games.
_ID = "run"
_NUM_GAMES = 4
_MOST_PLIES = 2000
_MOST_GAMES_BYTES = 400_000
_MOST_MODELS = 200
_MOST_ENTRIES = 1000
_MOST_CHARACTERS = 300
_MOST_CODE_BYTES = 20_000

# Exceptions that a reader may raise for damaged files or files of other programs.
_DAMAGED = (
    TengenError,
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class WrittenReport:
    """The path, size and missing parts of a written report."""

    path: Path
    """Path of the HTML file."""
    num_bytes: int
    """Size of the file, in bytes."""
    missing: tuple[str, ...]
    """A line with the reason for each part that is missing, because it is
    unreadable."""


def write_report(
    run: str | Path,
    out: str | Path | None = None,
    *,
    task: str | None = None,
    made_by: str = "tengen.report.write_report",
) -> WrittenReport:
    """Writes the report of a run, which may be training. Blocks until it is durable.

    Parts whose files are damaged are omitted; the page lists them with the reasons.

    Args:
        run: The run directory.
        out: The file to write; None for ``RUN/report.html``.
        task: The run's task. Needed only to draw games of a task ``module:Class``,
            whose module is then imported.
        made_by: The command or call that creates the report, shown on the page.

    Raises:
        UsageError: The run does not exist, is a mirror or has a newer schema; ``task``
            is not the run's task; or the folder of ``out`` does not exist.
        RunError: The file cannot be written.
    """
    found = RunDirectory(run)
    if not (found.path / "run.json").is_file():
        raise UsageError(
            f"run ({run}) is not a run directory; "
            f"give the folder that tengen train --out made"
        )
    check_no_mirror(found)
    path = found.path / REPORT_FILE if out is None else Path(out)
    check_new_file("out", path)
    parts = _Parts(found, task)
    made = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    made = f"Made by {made_by}, tengen {__version__}, {made}."
    data = _page(parts.name, parts.content(made))
    publish_file(path, data)
    return WrittenReport(path, len(data), tuple(parts.missing))


class _Parts:
    """Reads the parts of the page. Each part reads only its own files.

    Args:
        run: The run; its ``run.json`` must exist.
        typed: The task that the user typed, or None.

    Raises:
        UsageError: ``run.json`` has a newer schema, or ``typed`` is not the run's task.
    """

    def __init__(self, run: RunDirectory, typed: str | None) -> None:
        self._run = run
        self._typed = typed
        self._task = ""
        self.missing: list[str] = []
        self.notes: list[str] = []
        try:
            self._task = str(run.read_run()["config"].get("task", ""))
        except RunError:
            pass  # Each part reports the error.
        else:
            if typed not in (None, self._task):
                raise UsageError(
                    f"task ({typed}) must be {self._task}, that of {run.path}; "
                    f"correct it"
                )
        self.name = f"{self._task}: {run.path}" if self._task else str(run.path)

    def content(self, made: str) -> dict[str, Any]:
        """Returns the page's data: ``answers``, responses by URL, and ``report``."""
        base = f"/api/runs/{_ID}"
        shown = self._part("Run", self._shown)
        answers = {base: shown if shown else {"error": self.missing[-1]}}
        answers |= {
            f"{base}/games{rest}": each
            for rest, each in (self._part("Games", self._games) or {"": []}).items()
        }
        report = {
            "name": self.name,
            "ratings": self._part("Ratings", self._ratings),
            "code": self._part("Code and machine", self._code) or "",
            "made": made,
            "missing": self.missing,
            "notes": self.notes,
        }
        return {"answers": answers, "report": report}

    def _part(self, title: str, read: Callable[[], Any]) -> Any:
        """Returns the result of ``read``; if it fails, adds to ``missing``."""
        try:
            return read()
        except _DAMAGED as error:
            is_told = isinstance(error, TengenError)
            why = str(error) if is_told else f"{type(error).__name__}: {error}"
            self.missing.append(f"{title}: {' '.join(why.split())}")
            return None

    def _shown(self) -> dict[str, Any]:
        view = RunView(self._run).read()
        status = {**read_status(self._run, view), "memory": {}}
        shown = run_page({"id": _ID, "name": self.name}, status, view)
        settings, measured = shown["config"], self._run.read_run().get("measured")
        shown["config"] = {**settings, "measured": measured} if measured else settings
        for name in ("run", "config", "curves"):
            shown[name] = _short(shown[name])
        return dict(shown)

    def _ratings(self) -> dict[str, Any] | None:
        content = self._run.read_run()
        if has_actors(content):
            return None
        config = content["config"]
        ladder = from_dict(
            LadderConfig, of_agent(config, "rating") or {}, "agent.rating"
        )
        play = from_dict(PlayConfig, of_agent(config, "play") or {}, "agent.play")
        book = None
        if ladder.book:
            # Import roles here, because they import agents, which import torch.
            from tengen.roles import read_config
            from tengen.roles.inputs import run_book

            book = run_book(read_config(self._run), self._run)
        found = run_ratings(self._run, self._task, ladder, play, book)
        if not found:
            self.notes.append("No model is rated yet.")
            return None
        rows = [
            (name, one.elo, one.error, one.num_games)
            for name, one in list(found.items())[-_MOST_MODELS:]
        ]
        return {"simulations": ladder.num_simulations, "rows": rows}

    def _games(self) -> dict[str, Any]:
        """Returns a few games by URL, of the newest match or else of self-play."""
        if has_actors(self._run.read_run()):
            films = f"tengen eval {self._run.path} --video FOLDER records some"
            self.notes.append(f"Episodes of environments are not kept; {films}.")
            return {"": []}
        if self._typed is None and is_program(self._task):
            option = f"--task {_short(self._task)}"
            self.notes.append(f"The game is in Python; add {option} to show games.")
            return {"": []}
        check_typed(self._task, self._typed, self._run.path)
        source = next(iter(sources(self._run)), None)
        if source is None:
            return {"": []}
        found: dict[str, Any] = {}
        num_bytes = 0
        for kept in _chosen(read_source(source)):
            page = game_page(open_game(kept.variant or self._task), kept)
            num_bytes += len(json.dumps(page))
            if num_bytes > _MOST_GAMES_BYTES:
                break
            found[f"/{_ID}/{kept.index}"] = page
        listed = source_page(source)
        listed["games"] = [
            row for row in listed["games"] if f"/{_ID}/{row['index']}" in found
        ]
        return {"": [{**source_row(source), "id": _ID}], f"/{_ID}": listed, **found}

    def _code(self) -> str:
        """Returns the versions and machines of the run's calls, newest call first."""
        path = self._run.path / "code.txt"
        try:
            data = path.read_bytes()[-_MOST_CODE_BYTES:]
        except FileNotFoundError:
            self.notes.append("It has not been trained yet.")
            return ""
        except OSError as error:
            raise RunError(
                f"code.txt ({path}) cannot be read, {os_reason(error)}; check the file"
            ) from error
        blocks = data.decode(errors="replace").strip().split("\n\n")
        return "\n\n".join(reversed(blocks))


def _chosen(games: tuple[KeptGame, ...]) -> Iterator[KeptGame]:
    """Yields a few games of a source, first those with different results."""
    shown = [game for game in games if len(game.moves) <= _MOST_PLIES]
    firsts = {(game.title, game.result): game for game in reversed(shown)}.values()
    chosen = sorted(shown, key=lambda game: game not in firsts)
    yield from chosen[:_NUM_GAMES]


def _short(value: Any) -> Any:
    """Returns a JSON value in which long strings, lists and objects are shortened."""
    if isinstance(value, str) and len(value) > _MOST_CHARACTERS:
        return f"{value[:_MOST_CHARACTERS]} ... ({len(value):,} characters)"
    if isinstance(value, dict):
        first = list(value.items())[:_MOST_ENTRIES]
        return {_short(key): _short(each) for key, each in first}
    if isinstance(value, (list, tuple)):
        return [_short(each) for each in value[:_MOST_ENTRIES]]
    return value


def _page(title: str, content: dict[str, Any]) -> bytes:
    """Returns the page, in UTF-8. It loads no other resources.

    Its content security policy allows only its own script and style, as defence in
    depth in case text from the run is interpreted as markup.
    """
    folder = resources.files("tengen.serve") / "assets"
    shell, script, style = (
        (folder / name).read_text(encoding="utf-8")
        for name in ("index.html", "app.js", "style.css")
    )
    allowed = f"script-src {_digest(script)}; style-src {_digest(style)}"
    policy = f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    # Escape "<": "</script>" in the data would end the script element.
    data = json.dumps(content, separators=(",", ":")).replace("<", "\\u003c")
    head = [
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">',
        f"<style>{style}</style>",
        f'<script type="application/json" id="tengen-data">{data}</script>',
        f'<script type="module">{script}</script>',
    ]
    before, _, rest = shell.partition("<title>")
    body = rest[rest.index("</head>") :]
    shown = "".join((before, f"<title>{html.escape(title)}</title>", *head, body))
    return shown.encode("utf-8", "replace")


def _digest(text: str) -> str:
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest())
    return f"'sha256-{digest.decode()}'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen report``."""
    parser.add_argument("run", metavar="RUN", help="the run directory")
    parser.add_argument(
        "--out", metavar="FILE", help=f"the page to write, RUN/{REPORT_FILE} by default"
    )
    add_task_argument(parser)


def report(args: argparse.Namespace) -> dict[str, Any]:
    """Writes the report of a run and prints its path.

    Returns ``run``, ``html`` (the path), ``num_bytes``, ``missing`` (a line for each
    part that could not be read) and ``exit_code`` (1 if a part is missing).

    Raises:
        UsageError: The run or the file's folder does not exist.
        RunError: The file cannot be written.
    """
    words = ["tengen", "report", args.run]
    words += ["--out", args.out] if args.out is not None else []
    words += ["--task", args.task] if args.task is not None else []
    made_by = shlex.join(words)
    with ProgressLine("reading the run"):
        made = write_report(args.run, args.out, task=args.task, made_by=made_by)
    if not args.json:
        print(f"{made.path}: {made.num_bytes / 1000:,.0f} kB")
    for line in made.missing:
        warnings.warn(f"report lacks {line}", TengenWarning, stacklevel=2)
    return {
        "exit_code": RunError.exit_code if made.missing else 0,
        "run": args.run,
        "html": str(made.path),
        "num_bytes": made.num_bytes,
        "missing": list(made.missing),
    }
