"""Role ``shuffle``: each turn samples all batches that the rate limiter allows."""

from __future__ import annotations

import dataclasses
import time
from functools import partial

from tengen.agents.alphazero import AlphaZero
from tengen.errors import RunError, UsageError
from tengen.experience import Shuffler, ShufflingStopped
from tengen.experience.rows.shuffled_files import read_turn
from tengen.learners.checkpoint import read_extra
from tengen.roles.config import RunConfig
from tengen.roles.config.games import open_window
from tengen.roles.role import Report, Role, RoleContext
from tengen.run import RunDirectory


class ShuffleRole(Role):
    """Samples batches and writes them to ``RUN/shuffled``.

    A turn writes a folder (a shuffled turn) if the learner's newest checkpoint has used
    rows of the previous folder. Folders that no checkpoint needs are removed.

    Raises:
        UsageError: The learner samples its own batches, or another process shuffles.
        RunError: A segment is damaged, or there is too little memory.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        AlphaZero.of(config.agent, "shuffle")
        if "shuffle" not in config.schedule.learning:
            raise UsageError(
                "role (shuffle) is not used if the learner samples batches itself; "
                "start the run with --set store.drawn_by=shuffle"
            )
        super().__init__(config, run, context, "shuffle")
        self._shuffler: Shuffler | None = self._open()

    def turn(self) -> Report | None:
        """Samples and writes batches; None if none are needed or there are few rows."""
        self.waits_for = ""
        needed, reached = self._learner_turns()
        self._run.shuffled.retire_before(needed)
        if self._shuffler is None:
            self._shuffler = self._open()
        if reached < self._shuffler.newest:
            self.waits_for = (
                f"shuffled turn ({self._shuffler.newest:06d}) must be started by the "
                "learner before the next one is sampled; run tengen learn"
            )
            return None
        start_s = time.monotonic()
        try:
            turn = self._shuffler.turn(self._context.stop)
        except ShufflingStopped:
            self._shuffler.close()
            self._shuffler = None
            return {"stopped": True}
        if turn is None:
            self.waits_for = self._shuffler.window.lacks(
                self._config.learner.batch_size
            )
            return None
        seconds = time.monotonic() - start_s
        num_samples = sum(turn.shard_rows)
        return {
            **dataclasses.asdict(turn),
            "shard_rows": list(turn.shard_rows),
            "turn": self._shuffler.newest,
            "num_samples": num_samples,
            "samples_per_s": num_samples / max(seconds, 1e-9),
            "seconds": seconds,
        }

    def close(self) -> None:
        """Releases the lock, so that another process can shuffle."""
        if self._shuffler is not None:
            self._shuffler.close()
        super().close()

    def _open(self) -> Shuffler:
        return Shuffler(
            self._run.shuffled,
            partial(open_window, self._config, self._run),
            self._config.learner.batch_size,
            self._context.num_threads,
            first_turn=self._learner_turns()[1] + 1,
        )

    def _learner_turns(self) -> tuple[int, int]:
        """Returns the first shuffled turn that a checkpoint needs, and the last in use.

        A turn with fewer rows than a batch counts as in use, because the learner needs
        rows of the next turn to fill a batch.
        """
        places = []
        for number in self._run.checkpoints.numbers():
            path = self._run.checkpoints.entry(number)
            try:
                table = read_extra(path)["table"]
                places.append((int(table["turn"]), int(table["row"])))
            except RunError:
                if path.exists():
                    raise  # otherwise the learner has removed the checkpoint
        if not places:
            return 0, -1
        turn, row = places[-1]
        left = 0
        if row == 0 and turn in self._run.shuffled.numbers():
            left = sum(read_turn(self._run.shuffled, turn).shard_rows)
        has_begun = row > 0 or 0 < left < self._config.learner.batch_size
        return min(places)[0], turn if has_begun else turn - 1
