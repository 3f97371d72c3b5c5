"""Writers and samplers that the short calls of a table share between threads."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, Protocol, TypeVar

from tengen.errors import UsageError
from tengen.store.waiting import is_over

__all__ = ["Lending"]


class _Closable(Protocol):
    def close(self) -> None: ...


K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound=_Closable)


class _Place(Generic[T]):
    """Where one of them is, and whose turn it is."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.one: T | None = None


class Lending(Generic[K, T]):
    """Lends one object a key, each to one thread at a time. Thread-safe.

    Args:
        make: Makes the object of a key, when it is first asked for.
    """

    def __init__(self, make: Callable[[K], T]) -> None:
        self._make = make
        self._places: dict[K, _Place[T]] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def lend(self, key: K) -> Iterator[T]:
        """Lends an object; blocks while another thread has it.

        Where its server has gone or has refused it, it is made anew the next time.
        """
        with self._lock:
            place = self._places.setdefault(key, _Place())
        with place.lock:
            if place.one is None:
                place.one = self._make(key)
            try:
                yield place.one
            except UsageError as error:
                if is_over(error):
                    place.one = None
                raise

    def for_each(self, visit: Callable[[T], None]) -> None:
        """Lends each that was made to ``visit``, one after another."""
        with self._lock:
            keys = [key for key, place in self._places.items() if place.one is not None]
        for key in keys:
            with self.lend(key) as one:
                visit(one)

    def close(self) -> None:
        """Closes all; who asks again gets others. Idempotent."""
        with self._lock:
            places, self._places = self._places, {}
        for place in places.values():
            if place.one is not None:
                place.one.close()
