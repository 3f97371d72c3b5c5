"""A generation that is being played; parts of it may be sealed meanwhile.

Each sealed part is a segment of its own incarnation, so that the guarantees of ``seal``
hold for it. A journal of the generation stays open from the first game to the last, by
which a restart knows that the generation is not over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tengen import _core
from tengen.experience.games.journal import OpenSegment
from tengen.experience.games.segment import RecordedGames
from tengen.experience.games.writer import ExperienceWriter

__all__ = ["OpenGeneration"]


class OpenGeneration:
    """A writer's generation and its open journal. Not thread-safe.

    The self-play engine's threads put games into ``sink`` meanwhile, except while
    ``seal_part`` runs.

    Args:
        writer: The writer, held by this process.
        number: The generation's number.
        game: The registered name of the game.
        segment: The generation's journal, opened by the writer.
        next_incarnation: Returns a new incarnation of the writer; see
            ``ExperienceWriter``.
    """

    def __init__(
        self,
        writer: ExperienceWriter,
        number: int,
        game: str,
        segment: OpenSegment,
        next_incarnation: Callable[[], int],
    ) -> None:
        self.number = number
        self._writer = writer
        self._game = game
        self._segment = segment
        self._next_incarnation = next_incarnation
        self._num_before = 0

    @property
    def sink(self) -> _core.GameSink:
        """The sink of finished games; there is a new one after each sealed part."""
        return self._segment.sink

    @property
    def num_appended(self) -> int:
        """Games taken since the generation was opened."""
        return self._num_before + self._segment.num_appended

    @property
    def num_unsealed(self) -> int:
        """Games taken since the generation was opened or a part was last sealed."""
        return self._segment.num_appended

    def append(self, frame: bytes) -> None:
        """Takes a game; see ``OpenSegment.append``."""
        self._segment.append(frame)

    def flush(self) -> None:
        """Blocks until every game taken is durable; see ``OpenSegment.flush``."""
        self._segment.flush()

    def close(self) -> None:
        """Flushes, and takes no more; see ``OpenSegment.close``."""
        self._segment.close()

    def recorded(self) -> RecordedGames:
        """Returns the games that are stored, in sealed parts and in journals."""
        return self._writer.recorded_games(self.number)

    def unfinished(self) -> list[bytes]:
        """Returns the games in flight that were last kept."""
        return self._writer.unfinished_games(self.number)

    def keep_unfinished(self, games: Sequence[bytes]) -> None:
        """Publishes the games in flight, once what was finished is durable.

        Args:
            games: Each as ``_core.GameQueue.unfinished`` gives it.

        Raises:
            RunError: The disk refuses.
        """
        self.flush()
        self._writer.keep_unfinished(self.number, games)

    def seal_part(self) -> None:
        """Seals the finished games for learners, and goes on in a new journal.

        A kill at any instant neither loses nor doubles a game. After an error it may be
        called again.

        Raises:
            RunError: The disk refuses; the games stay in their journals.
        """
        self._segment.close()
        num_closed = self._segment.num_appended
        # Opened before the part is sealed: without a journal the generation is over.
        self._writer.move_on(self._next_incarnation())
        self._segment = self._writer.open_games(self.number, self._game)
        self._num_before += num_closed
        self._writer.seal_before(self.number, self._segment.path)
