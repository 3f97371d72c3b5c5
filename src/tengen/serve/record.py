"""``tengen demos play``: records episodes that a person plays in a browser.

The page keeps the time: it sends each action, and the response has the frame of the
next state. So the environment waits while the page is paused or closed.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

from tengen import envs
from tengen.config import check
from tengen.envs.copies import MAX_SEED, RAISED, one_line
from tengen.errors import RunError, TengenError, UsageError
from tengen.evaluation import Recorder
from tengen.experience import Episode, write_demonstrations
from tengen.play import recording
from tengen.serve.command import (
    add_address_arguments,
    check_installed,
    serve_application,
)
from tengen.tensors import ACTION_MASK

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from tengen.serve.running import Server

_PAGE = "/record"  # as in web/src/main.tsx
_STEP_TIMEOUT_S = 120.0
_FPS, _MOST_FPS = 30.0, 60.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen demos play``."""
    recording.add_arguments(parser)
    parser.add_argument(
        "--keys",
        default="",
        help="a key for each action, in order: wasd, or with commas "
        "ArrowLeft,ArrowDown,ArrowRight,ArrowUp (the keys of the environment)",
    )
    add_address_arguments(parser)


def demos_play(args: argparse.Namespace) -> dict[str, Any]:
    """Serves a page to play on, until all episodes are recorded or Ctrl-C.

    Returns:
        See ``tengen.play.demos_command.demos_show``.

    Raises:
        UsageError: The extra ``serve`` is missing, an argument does not fit, or no
            episode was completed.
        RunError: The environment fails, or writing failed. Earlier episodes remain.
    """
    check_installed()
    from tengen.serve.app import Application, Pages

    recording.check_arguments(args)
    keys = args.keys.split(",") if "," in args.keys else list(args.keys)
    recording.keys_of(args.task, keys)

    def record(add: recording.Add) -> None:
        one = Recording(args, keys, add)

        def say(server: Server, address: str) -> None:
            one.on_end = server.stop
            print(f"{args.task} at {address} (Ctrl-C ends the recording)", flush=True)

        routes = [*one.routes(), *Pages(_PAGE).routes()]
        with contextlib.closing(one):
            make = functools.partial(Application, routes, lambda: None)
            serve_application(args, make, say)

    spec = envs.env_spec(args.task)
    demos = write_demonstrations(args.out, spec, record, source="keys", is_live=True)
    return recording.told(demos, args)


class Recording:
    """The episodes of a person, and the API of the page.

    An episode is recorded when the next one begins, or at the end; until then the
    person can discard it. One thread makes all calls of the environment.

    Args:
        args: The command's arguments.
        keys: The key of each action, as in ``KeyboardEvent.key``; empty for the keys of
            the environment.
        add: Records an episode.

    Raises:
        UsageError: The environment cannot be created, or renders no frames.
        RunError: The environment fails.

    Attributes:
        on_end: Called when all episodes are recorded, and after a failure, which
            ``close`` raises.
    """

    def __init__(
        self, args: argparse.Namespace, keys: list[str], add: recording.Add
    ) -> None:
        self.on_end: Callable[[], None] = lambda: None
        self._task, self._seed, self._keys, self._add = args.task, args.seed, keys, add
        self._num_recorded, self._num_left = 0, args.episodes
        self._at = 0
        self._ended: Episode | None = None
        self._failure: TengenError | None = None
        self._worker = ThreadPoolExecutor(1)
        try:
            self._worker.submit(self._open).result()
        except BaseException:
            self._worker.shutdown()
            raise

    def close(self) -> None:
        """Closes the environment; an ended episode is recorded unless a call failed.

        Raises:
            RunError: The environment failed, or writing failed.
        """

        def end() -> None:
            with contextlib.closing(self._env):
                if self._failure is None:
                    self._record()

        with self._worker:
            self._worker.submit(end).result()
        if self._failure is not None:
            raise self._failure

    def routes(self) -> list[Route]:
        """Returns the routes of the API, and one from ``/`` to the page.

        A change is a POST to ``step`` with a ``choice``, ``next`` or ``discard``. It
        has the number ``at`` of the state that its page shows, so that a repeated
        request, or one of a second page, changes nothing.
        """
        from starlette.concurrency import run_in_threadpool
        from starlette.responses import RedirectResponse
        from starlette.routing import Route

        from tengen.serve.replies import json_reply, read_json, shows

        def shown(request: Request) -> dict[str, Any]:
            return self._worker.submit(self._answer, self._described).result()

        def route(name: str, work: Callable[[Any], None]) -> Route:
            async def reply(request: Request) -> Response:
                asked = await read_json(request)
                change = functools.partial(self._change, work, asked)
                done = self._worker.submit(self._answer, change)
                return json_reply(await run_in_threadpool(done.result))

            return Route(f"/api/recording/{name}", reply, methods=["POST"])

        return [
            Route("/", lambda request: RedirectResponse(_PAGE)),
            Route("/api/recording", shows(shown)),
            route("step", self._step),
            route("next", self._next),
            route("discard", self._discard),
        ]

    def _answer(self, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Returns the result of ``work``; a failure ends the recording."""
        if self._failure is not None:
            raise self._failure
        try:
            return work()
        except UsageError:
            raise
        except TengenError as error:
            self._failure = error
            self.on_end()
            raise

    def _change(
        self, work: Callable[[Any], None], asked: dict[str, Any]
    ) -> dict[str, Any]:
        if type(asked.get("at")) is int and asked["at"] == self._at and self._num_left:
            work(asked.get("choice"))
            self._at += 1
            if not self._num_left:
                self.on_end()
        return self._state()

    def _step(self, choice: Any) -> None:
        is_known = type(choice) is int and 0 <= choice < len(self._legal)
        is_legal = is_known and self._legal[choice] and self._ended is None
        rule = "must be legal in an episode that has not ended; choose another"
        check(is_legal, "choice", one_line(choice), rule)
        step = self._env.step(np.array([choice], np.int64))
        total = self._total + float(step.reward[0])
        self._reach(step.observation, self._num_steps + 1, total)

    def _next(self, _: Any) -> None:
        rule = "must have ended; play on, or discard it"
        check(self._ended is not None, "episode", self._num_recorded + 1, rule)
        self._record()
        if self._num_left:
            self._reach(self._env.step(np.zeros(1, np.int64)).observation)

    def _discard(self, _: Any) -> None:
        # ``reset`` would begin the first episode of the seed again.
        self._ended = None
        self._env.close()
        self._seed = (self._seed + 1) % (MAX_SEED + 1)
        try:
            self._open()
        except UsageError as error:  # no fault of the request
            raise RunError(str(error)) from error

    def _open(self) -> None:
        def make() -> envs.Env:
            self._film = envs.make_filmed(self._task, 1, self._seed, 1)
            return self._film

        env = envs.TimelyEnv(make, _STEP_TIMEOUT_S, self._task)
        self._env = Recorder(env, self._num_left, self._keep)
        self._reach(self._env.reset())

    def _keep(self, episode: Episode) -> None:
        self._ended = episode

    def _record(self) -> None:
        episode, self._ended = self._ended, None
        if episode is not None:
            self._add(episode)
            self._num_recorded += 1
            self._num_left -= 1

    def _reach(self, seen: envs.Arrays, num_steps: int = 0, total: float = 0) -> None:
        self._num_steps, self._total = num_steps, total
        num_choices = self._film.spec.actions.num_choices[0]
        mask = seen.get(ACTION_MASK)
        self._legal = [True] * num_choices if mask is None else mask[0].tolist()

    def _state(self) -> dict[str, Any]:
        picture = self._film.picture(0)
        return {
            "at": self._at,
            "num_recorded": self._num_recorded,
            "num_left": self._num_left,
            "num_steps": self._num_steps,
            "total": self._total,
            "legal": self._legal,
            "has_ended": self._ended is not None,
            "width": picture.shape[1],
            "pixels": base64.b64encode(picture.tobytes()).decode(),  # RGB, row by row
        }

    def _described(self) -> dict[str, Any]:
        """Returns the state, and beside it the task, the actions and their keys.

        ``keys`` has pairs of some keys, which are held together, and an action. The
        action of no keys is that of a person who does nothing.

        Source: Gymnasium, ``gymnasium/utils/play.py``: a key of ``get_keys_to_action``
        is a character or a key code of pygame.
        """
        core = getattr(self._film.native, "unwrapped", self._film.native)
        count = len(self._legal)
        names = list(map(str, range(count)))
        with contextlib.suppress(*RAISED):
            if hasattr(core, "get_action_meanings"):
                found = list(islice(core.get_action_meanings(), count + 1))
            else:
                found = [action.name for action in islice(core.actions, count + 1)]
            shown = [one_line(name, 40) for name in found]
            names = shown if len(shown) == count else names
        pairs: list[tuple[list[str | int], int]] = []
        with contextlib.suppress(*RAISED):
            pairs = [
                ([x if isinstance(x, str) else int(x) for x in keys], int(choice))
                for keys, choice in core.get_keys_to_action().items()
                if 0 <= int(choice) < count
            ]
        if self._keys:
            pairs = [pair for pair in pairs if not pair[0]]
            pairs += [([key], choice) for choice, key in enumerate(self._keys)]
        fps = self._film.pictures_per_s
        return {
            "task": self._task,
            "frames_per_s": fps if 1 <= fps <= _MOST_FPS else _FPS,
            "names": names,
            "keys": pairs,
            **self._state(),
        }
