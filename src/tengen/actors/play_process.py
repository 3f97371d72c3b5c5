"""A self-play process, which plays games in Python under its own GIL.

    python -m tengen.actors.play_process DESCRIPTOR

The process plays the games that its parent process assigns (`tengen.actors.processes`)
on one thread, and sends them back over the socket with file descriptor DESCRIPTOR. It
writes no files, and exits when the parent closes the socket.

The parent sends ``{"play": {...}}`` with one generation's games, ``{"stop": True}``, or
``{"fewer": N}`` to reduce the generation to its first N games. The process sends
``{"games": [BYTES], "num_evaluations": N}`` every quarter of a second, and finally
``{"report": {...}}`` or ``{"error": TengenError}``.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import sys
import traceback
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tengen import _core, games
from tengen.actors.selfplay import GenerationReport, play_generation
from tengen.actors.selfplay_config import SelfplayConfig
from tengen.config import from_dict
from tengen.errors import RunError, refusal
from tengen.inference import Backend, InferenceConfig, open_backend, search_outputs
from tengen.run import own_files

_ALONE_S = 5.0
"""Seconds until ``_core.Lifeline`` ends a process whose parent closed the socket."""


def main(argv: list[str]) -> int:
    """Plays games until the parent closes the socket, and returns the exit code."""
    # Ignore the signals, because the parent receives them too and handles them.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    parent = Connection(int(argv[0]))
    # A child process of the game must not inherit the socket, because the socket would
    # then stay open when this process ends, and the parent would not notice the end.
    own_files(parent)
    os.set_inheritable(parent.fileno(), False)
    # Lifeline ends the process even if the game's Python code never returns.
    _core.Lifeline(parent.fileno(), _ALONE_S)
    try:
        _serve(parent)
    except (EOFError, ConnectionError):
        return 0
    except Exception as error:
        known = refusal(error) or RunError(
            f"self-play process failed because of a bug, {type(error).__name__} "
            f"{error}; report it with the traceback in the run's logs"
        )
        parent.send({"error": known})
        # print raises OSError if the disk with the log is full.
        with contextlib.suppress(OSError):
            traceback.print_exc()
        return known.exit_code
    return 0


def _serve(parent: Connection) -> None:
    player = _Player(parent)
    while True:
        message = parent.recv()
        # Ignore "stop" and "fewer" messages that arrive after the games have ended.
        if "play" in message:
            report = player.play(**message["play"])
            parent.send({"report": dataclasses.asdict(report)})


class _Player:
    """Plays generations of games; caches the game and the newest model."""

    def __init__(self, parent: Connection) -> None:
        self._parent = parent
        self._game: games.Game | None = None
        self._backend: tuple[Path, Backend] | None = None

    def play(
        self,
        task: str,
        actor: dict[str, Any],
        directory: Path,
        inference: dict[str, Any],
        generation: dict[str, Any],
    ) -> GenerationReport:
        """Plays this process's share of a generation, and sends each finished game.

        Args:
            task: The game; the parent has checked that the user typed it.
            actor: A ``SelfplayConfig`` as JSON values.
            directory: The model's directory.
            inference: An ``InferenceConfig`` as JSON values.
            generation: Keyword arguments of ``GameQueue``.
        """
        if self._game is None:
            games.allow(task)
            self._game = games.open_game(task)
        if self._backend is None or self._backend[0] != directory:
            settings = from_dict(InferenceConfig, inference)
            outputs = search_outputs(scores=False)
            backend = open_backend(directory, settings, 1, outputs=outputs)
            self._backend = (directory, backend)
        played, finished = GenerationReport(), set(generation["finished"])
        while True:
            part = _Part(self._parent, generation, played.num_evaluations)
            report = play_generation(
                self._game,
                from_dict(SelfplayConfig, actor),
                self._backend[1],
                part.queue,
                part.sink,
                num_threads=1,
                on_progress=part.tell,
            )
            part.tell(report.num_games, report.num_evaluations)
            played = played.plus(report)
            if part.is_stopped or part.num_games == generation["num_games"]:
                return played
            finished |= part.finished
            generation = {
                **generation,
                "num_games": part.num_games,
                "finished": [i for i in finished if i < part.num_games],
                "unfinished": part.queue.unfinished(),
            }


class _Part:
    """Handles the parent's messages and the finished games of one generation."""

    def __init__(
        self, parent: Connection, generation: dict[str, Any], num_evaluations: int
    ) -> None:
        self.queue = _core.GameQueue(**generation)
        self.sink = _core.GameFrames()
        self.num_games: int = generation["num_games"]
        self.finished: set[int] = set()
        self.is_stopped = False
        self._parent = parent
        self._num_evaluations = num_evaluations

    def tell(self, num_games: int, num_evaluations: int) -> None:
        """Sends finished games to the parent, and handles the parent's messages."""
        try:
            while self._parent.poll():
                message = self._parent.recv()
                self.num_games = message.get("fewer", self.num_games)
                self.is_stopped |= "stop" in message
                self.queue.stop()
            frames = self.sink.take()
            num_evaluations += self._num_evaluations
            self._parent.send({"games": frames, "num_evaluations": num_evaluations})
        except (EOFError, ConnectionError):
            # Exit immediately, because the game's code might never return.
            os._exit(0)
        self.finished |= {int(_core.decode_game(one).game_index) for one in frames}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
