"""What is closed at the end of a ``with``."""

from __future__ import annotations

from types import TracebackType
from typing import Self

__all__ = ["Closable"]


class Closable:
    """Base of what a ``with`` closes, and `Lending` too."""

    def close(self) -> None:
        """Ends its use. Idempotent."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
