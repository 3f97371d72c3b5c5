"""The segments that a self-play window has read, and the rows that it still holds."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from tengen.experience.games.manifest import Manifest, SegmentEntry
from tengen.experience.rows.derived_rows import DerivedRows
from tengen.experience.rows.validation import is_validation, select_games
from tengen.experience.window_config import WindowConfig

__all__ = ["MetSegments", "WindowSegments", "segments_of_state"]


class MetSegments(NamedTuple):
    """The segments that a window had read before this process began."""

    manifest: Manifest
    """All of these segments, in order."""
    left: list[tuple[SegmentEntry, int]]
    """Segments that the window has dropped, each with how many rows it had to learn."""
    held: list[SegmentEntry]
    """The segments after these, which the window holds."""


def segments_of_state(
    experience: Path, config: WindowConfig, state: Mapping[str, Any]
) -> MetSegments:
    """Returns the segments of a window's state, without reading them.

    Args:
        experience: ``RUN/experience``.
        config: Size of the window.
        state: As ``GameWindow.state`` returns it; ``manifest`` and ``segment_rows`` are
            read.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: The state has a wrong form.
    """
    manifest = Manifest.from_dict(experience, state["manifest"])
    aside = manifest.set_aside()
    segment_rows = [
        rows for i, rows in enumerate(state["segment_rows"]) if i not in aside
    ]
    entries = list(manifest)
    num_rows = sum(segment_rows)
    first = num_rows - config.window_rows(num_rows)
    end = 0
    left: list[tuple[SegmentEntry, int]] = []
    for index, entry in enumerate(entries):
        num_learned = segment_rows[index]
        if end + num_learned > first:
            return MetSegments(manifest, left, entries[index:])
        end += num_learned
        left.append((entry, num_learned))
    return MetSegments(manifest, left, [])


class WindowSegments:
    """All segments, with the rows of those that the window has not dropped.

    Not thread-safe, except ``DerivedRows.derive``.

    Args:
        game: The name, as `tengen.games.open_game` takes it.
        config: Size of the window.
        auxiliary: Whether rows have the targets of auxiliary heads too.
        met: The segments read before; those that the window reaches are loaded.

    Attributes:
        manifest: All segments, in order.
        num_learned: Number of rows to learn from in each segment.
        rows: The rows to learn from.
        validation_rows: The rows of validation games.

    Raises:
        UsageError: The game is unknown, or a game in Python breaks the protocol.
        RunError: A segment that is held is missing or damaged.
    """

    def __init__(
        self, game: str, config: WindowConfig, auxiliary: bool, met: MetSegments
    ) -> None:
        self._game = game
        self._config = config
        self.manifest = met.manifest
        self.num_learned = [num_learned for _, num_learned in met.left]
        self._known = {_key(entry) for entry, _ in met.left}
        # The ends of the held segments, counted in rows and in validation rows.
        self._ends: deque[tuple[int, int]] = deque()
        num_validation = sum(
            entry.num_rows - num_learned for entry, num_learned in met.left
        )
        self.rows = DerivedRows(game, auxiliary, sum(self.num_learned))
        self.validation_rows = DerivedRows(game, auxiliary, num_validation)
        for entry in met.held:
            self.load(entry)

    @property
    def num_bytes(self) -> int:
        """Bytes of memory for the games that are held."""
        return self.rows.num_bytes + self.validation_rows.num_bytes

    def load(self, entry: SegmentEntry) -> int | None:
        """Reads a segment, and drops those that the window no longer reaches.

        Args:
            entry: The segment, which is in the manifest.

        Returns:
            How many rows to learn from it has; None where it was read before.

        Raises:
            UsageError: The segment is of a newer schema or of another game.
            RunError: The segment is damaged.
        """
        with self.manifest.opened(entry, self._game) as reader:
            return self._insert(entry, reader.game_columns())

    def close(self) -> None:
        """Frees the games that are held. A second call does nothing."""
        self.rows.drop_before(self.rows.num_rows)
        self.validation_rows.drop_before(self.validation_rows.num_rows)

    def _insert(
        self, entry: SegmentEntry, columns: Mapping[str, NDArray[Any]]
    ) -> int | None:
        """Adds the games of a segment; see ``load``.

        Args:
            entry: The segment.
            columns: As ``SegmentReader.game_columns`` returns them.

        Raises:
            RunError: A move is illegal or a result is wrong, so the games are not of
                this game.
        """
        if _key(entry) in self._known:
            return None
        if self._config.validation_share > 0:
            kept = is_validation(
                entry.generation, columns["game_index"], self._config.validation_share
            )
            self.validation_rows.add(select_games(columns, kept))
            columns = select_games(columns, ~kept)
        num_new = self.rows.add(columns)
        self._known.add(_key(entry))
        self.num_learned.append(num_new)
        self._ends.append((self.rows.num_rows, self.validation_rows.num_rows))
        self._drop_old()
        return num_new

    def _drop_old(self) -> None:
        """Frees the segments, with both kinds of rows, that the window dropped."""
        num_rows = self.rows.num_rows
        first = num_rows - self._config.window_rows(num_rows)
        while self._ends and self._ends[0][0] <= first:
            end, validation_end = self._ends.popleft()
            self.rows.drop_before(end)
            self.validation_rows.drop_before(validation_end)


def _key(entry: SegmentEntry) -> tuple[str, int]:
    """Returns a segment's key."""
    return f"{entry.writer}/{entry.incarnation}", entry.generation
