"""A base class for objects that a ``with`` statement closes."""

from __future__ import annotations

from types import TracebackType
from typing import Self


class Closable:
    """Base class of objects that a ``with`` statement closes by calling ``close``."""

    def close(self) -> None:
        """Closes the object. Idempotent."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        """Returns the object itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes the object."""
        self.close()
