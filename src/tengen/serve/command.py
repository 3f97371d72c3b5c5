"""``tengen serve``: a web server to watch runs and to play against their agents."""

from __future__ import annotations

import argparse
import importlib.util
import os
import secrets
import socket
from pathlib import Path
from typing import Any

from tengen.bundled import bundled_names
from tengen.config import check, check_range
from tengen.distribution import pip_install_extra
from tengen.errors import UsageError
from tengen.games import allow
from tengen.run import usable_threads
from tengen.serve import Limits
from tengen.serve.catalog import Catalog

__all__ = ["add_arguments", "serve"]

_PORT = 8420
_RUNS = Path("runs")
_TOKEN = "TENGEN_SERVE_TOKEN"
_MIN_TOKEN = 16
_PACKAGES = ("starlette", "uvicorn")
_INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen serve``."""
    parser.add_argument(
        "runs",
        metavar="RUN",
        nargs="*",
        help=f"run directories (all below {_RUNS}/, including new ones)",
    )
    parser.add_argument(
        "--port",
        type=int,
        default=_PORT,
        help=f"the port to listen on, 0 for any free one ({_PORT})",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="the address to listen on (127.0.0.1, only for this machine); at any "
        f"other address pages require a token, which is the value of {_TOKEN}, or is "
        "generated and printed",
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        help="additional host name of this server, such as that of a reverse proxy; "
        "may be repeated",
    )
    parser.add_argument(
        "--simulations",
        type=int,
        default=Limits.max_simulations,
        metavar="N",
        help=f"maximum simulations of a search for a page ({Limits.max_simulations})",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=Limits.num_threads,
        metavar="N",
        help=f"threads that search one tree ({Limits.num_threads})",
    )
    parser.add_argument(
        "--task",
        action="append",
        default=[],
        metavar="module:Class",
        help="allow runs of this game in Python; other modules are not imported",
    )


def serve(args: argparse.Namespace) -> dict[str, Any]:
    """Prints the server's address, and serves until SIGINT or SIGTERM.

    Returns:
        ``address`` (without the token) and ``exit_code`` (130).

    Raises:
        UsageError: The extra ``serve`` is not installed, a folder is not a run, an
            option is invalid, or the server cannot listen on the address.
        RunError: A run is damaged.
    """
    check_installed()
    from tengen.serve.app import Application
    from tengen.serve.running import Server, bind, is_loopback

    check_range("port", args.port, 0, 65535)
    limits = Limits(
        max_simulations=args.simulations, num_threads=usable_threads(args.threads)
    )
    catalog = Catalog(args.runs, _RUNS)
    for task in args.task:
        allow(task)
    is_local = is_loopback(args.host)
    token = "" if is_local else _token()
    listener = bind(args.host, args.port)
    port = listener.getsockname()[1]
    names = {"localhost", "127.0.0.1", "[::1]", args.host, *args.name}
    if not is_local:
        names.add(socket.gethostname())
    application = Application(
        catalog,
        limits,
        names=names,
        any_address=not is_local,
        token=token,
        tasks=args.task,
    )
    shown = _shown_host(args.host)
    address = f"http://{shown}:{port}/" + (f"?token={token}" if token else "")

    def say() -> None:
        num_runs = len(catalog.runs())
        what = f"{num_runs} run{'' if num_runs == 1 else 's'}"
        if num_runs == 0:
            what = f"no run yet, {len(bundled_names())} players to play against,"
        print(f"{what} at {address} (Ctrl-C ends)", flush=True)

    Server(application, listener).run_until_stopped(say)
    return {"address": f"http://{shown}:{port}/", "exit_code": _INTERRUPTED}


def check_installed() -> None:
    """Raises UsageError if the web framework is not installed."""
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise UsageError(
            f"package ({missing[0]}) is not installed, but needed for the pages; "
            f"{pip_install_extra('serve')}"
        )


def _token() -> str:
    given = os.environ.get(_TOKEN, "")
    if not given:
        return secrets.token_urlsafe(24)
    is_good = len(given) >= _MIN_TOKEN and given.isascii()
    is_good &= all(c.isalnum() or c in "-_" for c in given)
    rule = f"must be at least {_MIN_TOKEN} letters, digits, - or _; make it longer"
    check(is_good, _TOKEN, f"of {len(given)} characters", rule)
    return given


def _shown_host(host: str) -> str:
    if host in ("0.0.0.0", "::"):
        return socket.gethostname()
    return f"[{host}]" if ":" in host else host
