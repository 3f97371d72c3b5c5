"""``tengen serve`` responds to every request, and discloses nothing it must not."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tengen.serve import Limits
from tests.unit.serve.served import Site, serving

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")

from tests.fuzz.served import Answer, ask_raw, paths_of, requests

TOKEN = "a-token-of-the-fuzzer"
CASES = int(float(os.environ.get("TENGEN_FUZZ_TIMES", "1")) * 250)
FUZZED = settings(
    max_examples=CASES,
    derandomize=CASES == 250,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
LIMITS = Limits(look_s=0.2, max_simulations=8)


@pytest.fixture(scope="module")
def site(shelf: SimpleNamespace) -> Iterator[Site]:
    with serving([], LIMITS, folder=shelf.folder) as site:
        yield site


@pytest.fixture(scope="module")
def locked(shelf: SimpleNamespace) -> Iterator[Site]:
    with serving([], LIMITS, folder=shelf.folder, token=TOKEN) as locked:
        yield locked


@pytest.fixture(scope="module")
def recording() -> Iterator[Site]:
    pytest.importorskip("gymnasium")
    from tests.unit.serve.playable import playing

    with playing(num_episodes=10**6) as (site, _, _):
        yield site


def check_answer(answer: Answer, shelf: SimpleNamespace) -> None:
    assert answer.status < 500 or answer.status == 503, answer
    whole = answer.head + answer.body
    for told in (shelf.secret, str(shelf.outside), "Traceback"):
        assert told.encode() not in whole, whole[:2000]


@FUZZED
@given(data=st.data())
def test_every_request_is_answered(
    site: Site, shelf: SimpleNamespace, data: Any
) -> None:
    _, request = data.draw(requests(paths_of(site)))
    check_answer(ask_raw(site, request), shelf)


@FUZZED
@given(data=st.data())
def test_nothing_is_done_without_the_token(
    locked: Site, shelf: SimpleNamespace, data: Any
) -> None:
    """The server does not even look up a model, and runs no search."""
    _, request = data.draw(requests(paths_of(locked)))
    done: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for path in (
            "tengen.serve.players.Players.get",
            "tengen.serve.searches.Searches.run",
            "tengen.serve.catalog.Catalog.find",
            "tengen.serve.runs_api.Watch.look",
        ):
            patch.setattr(path, lambda *_, path=path: done.append(path))
        answer = ask_raw(locked, request)
    check_answer(answer, shelf)
    assert answer.status == 0 or 400 <= answer.status < 500, answer
    assert done == []


def test_every_route_wants_the_token(locked: Site) -> None:
    """Covers every route and method, including those never generated at random."""
    for path, methods in paths_of(locked):
        filled = path.replace("{index:int}", "0").replace("{", "").replace("}", "")
        for method in methods:
            for given_token in (
                "",
                "Authorization: Bearer wrong\r\n",
                f"X: {TOKEN}\r\n",
            ):
                request = (
                    f"{method} {filled.replace(':path', '')} HTTP/1.1\r\n"
                    f"Host: 127.0.0.1\r\nConnection: close\r\n"
                    f"Content-Type: application/json\r\nContent-Length: 2\r\n"
                    f"{given_token}\r\n{{}}"
                )
                assert ask_raw(locked, request.encode()).status == 401, path


@settings(parent=FUZZED, max_examples=max(CASES // 4, 1))
@given(request=st.binary(max_size=200))
def test_bytes_that_are_no_request(
    site: Site, shelf: SimpleNamespace, request: bytes
) -> None:
    check_answer(ask_raw(site, request + b"\r\n\r\n"), shelf)


@settings(parent=FUZZED, max_examples=max(CASES // 4, 1))
@given(data=st.data())
def test_every_request_to_a_recording_is_answered(
    recording: Site, shelf: SimpleNamespace, data: Any
) -> None:
    _, request = data.draw(requests(paths_of(recording)))
    check_answer(ask_raw(recording, request), shelf)


def test_links_lead_nowhere(site: Site, shelf: SimpleNamespace) -> None:
    """Another user's run may link to files that only the server's user may read."""
    for run in ("tictactoe", "CartPole", "link", "outside"):
        for path in (
            *("", "/games", "/play", "/films/secret.mp4", "/films/link.mp4"),
            *(
                "/games/gate-000009",
                "/games/gate-000009/0",
                "/games/gate-000009/0/record",
            ),
            *("/games/selfplay-0.1.000009", "/games/selfplay-0.1.000009/0"),
        ):
            reply = site.ask(f"/api/runs/{run}{path}")
            assert shelf.secret.encode() not in reply.body, path
            if "000009" in path or "films" in path:
                assert reply.status == 422, path
    shown = site.ask("/api/runs/tictactoe/games").body
    assert b"000009" not in shown
    assert b"secret" not in site.ask("/api/environments").body
