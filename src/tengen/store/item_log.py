"""Items made durable in journals, until a checkpoint counts them as used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tengen.errors import UsageError
from tengen.run.publish import storage_error
from tengen.store.files import writer_files
from tengen.store.items import Item, ItemSchema
from tengen.store.journal import JournalGap, OpenSegment, read_journal
from tengen.store.writer import ExperienceWriter

__all__ = ["ItemLog"]


@dataclass
class _Journal:
    """A journal of the log, and the last sequence that it holds of each sender."""

    path: Path
    last: dict[str, int] = field(default_factory=dict)


class ItemLog:
    """The items of one table, in the order of their arrival.

    Not thread-safe, but ``flush`` may run beside the other methods.

    Args:
        directory: ``RUN/experience/<writer>`` of the table, its only writer.
        incarnation: Greater than every earlier one of this table.
        schema: The columns of every item.
        items_per_journal: Items after which the next journal begins, at least 1.

    Attributes:
        gaps: Where a kill or damage cost items that earlier incarnations kept.

    Raises:
        UsageError: Another process is this table now, or the incarnation was used.
        RunError: The folder cannot be written.
    """

    def __init__(
        self,
        directory: Path,
        incarnation: int,
        schema: ItemSchema,
        items_per_journal: int,
    ) -> None:
        self.gaps: list[JournalGap] = []
        self._schema = schema
        self._items_per_journal = items_per_journal
        self._journals: list[_Journal] = []
        self._open: OpenSegment | None = None
        self._num_opened = 0
        self._writer = ExperienceWriter(directory, incarnation)

    def read(self) -> list[Item]:
        """Returns what earlier incarnations kept, the oldest first. Called once.

        Raises:
            UsageError: A journal has other columns, or is of another schema.
            RunError: A journal's header or an item is damaged.
        """
        items: list[Item] = []
        for path in writer_files(self._writer.directory, "journal"):
            contents = read_journal(path)
            if contents.meta.get("columns") != self._schema.to_list():
                raise UsageError(
                    f"journal ({path}) must hold the columns of this table; "
                    f"choose another --out"
                )
            journal = _Journal(path)
            for frame in contents.frames:
                item = self._schema.decode(frame)
                journal.last[item.writer] = item.sequence
                items.append(item)
            self._journals.append(journal)
            self.gaps += contents.gaps
        return items

    def append(self, item: Item) -> None:
        """Takes an item; it is durable after ``flush``.

        Raises:
            RunError: The disk is full or fails.
        """
        frame = self._schema.encode(item)
        self._current().append(frame)
        self._journals[-1].last[item.writer] = item.sequence

    def trim(self, used: Mapping[str, int]) -> int:
        """Removes the journals of which every item was used.

        Args:
            used: The last sequence used of each sender, durable in a checkpoint.

        Returns:
            How many were removed.

        Raises:
            RunError: One cannot be removed.
        """
        open_path = None if self._open is None else self._open.path
        kept = []
        for journal in self._journals:
            left = any(used.get(w, -1) < last for w, last in journal.last.items())
            if left or journal.path == open_path:
                kept.append(journal)
                continue
            try:
                journal.path.unlink(missing_ok=True)
            except OSError as error:
                raise storage_error(journal.path, error) from error
        num_removed = len(self._journals) - len(kept)
        self._journals = kept
        return num_removed

    def flush(self) -> None:
        """Blocks until every item taken is durable.

        Raises:
            RunError: The disk is full or fails.
        """
        journal = self._open
        if journal is not None:
            journal.flush()

    def close(self) -> None:
        """Makes everything durable and lets the next writer in. Idempotent.

        Raises:
            RunError: The disk is full or fails.
        """
        try:
            if self._open is not None:
                self._open.close()
        finally:
            self._writer.release()

    def _current(self) -> OpenSegment:
        """The journal to append to: a new one where the last has its fill."""
        if (
            self._open is not None
            and self._open.num_appended >= self._items_per_journal
        ):
            self._open.close()
            self._open = None
        if self._open is None:
            self._open = self._writer.open_items(self._num_opened, self._schema)
            self._num_opened += 1
            self._journals.append(_Journal(self._open.path))
        return self._open
