"""Lends the writers and samplers of `Table.insert` and `Table.sample` to threads."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, Protocol, TypeVar

from tengen.errors import UsageError
from tengen.store.waiting import StoreTimeout, is_over


class _Closable(Protocol):
    def close(self) -> None: ...


K = TypeVar("K", bound=Hashable)
T = TypeVar("T", bound=_Closable)


class _Place(Generic[T]):
    """The object of one key, with the lock that the thread using the object holds."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.one: T | None = None


class Lending(Generic[K, T]):
    """A pool with one object per key, each lent to one thread at a time. Thread-safe.

    Args:
        make: Creates the object of a key on first use. Called with the key and a
            timeout in seconds, or None for no limit.
    """

    def __init__(self, make: Callable[[K, float | None], T]) -> None:
        self._make = make
        self._places: dict[K, _Place[T]] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def lend(self, key: K, timeout_s: float | None = None) -> Iterator[T]:
        """Yields the object of ``key``. Blocks while another thread uses the object.

        If the object's server has ended or rejected a request, the next call creates a
        new object.

        Args:
            key: The key of the object.
            timeout_s: Maximum wait in seconds for another thread, and timeout for the
                creation of the object; None for no limit.

        Raises:
            StoreTimeout: Another thread still uses the object.
        """
        with self._lock:
            place = self._places.setdefault(key, _Place())
        if not place.lock.acquire(timeout=-1 if timeout_s is None else timeout_s):
            raise StoreTimeout(
                f"call {key} waited {timeout_s:g} s for another thread; raise "
                "timeout_s, or give each thread its own name"
            )
        try:
            if place.one is None:
                place.one = self._make(key, timeout_s)
            try:
                yield place.one
            except UsageError as error:
                if is_over(error):
                    place.one = None
                raise
        finally:
            place.lock.release()

    def for_each(self, visit: Callable[[T], None], timeout_s: float | None) -> None:
        """Calls ``visit`` with each existing object, one after another."""
        with self._lock:
            keys = [key for key, place in self._places.items() if place.one is not None]
        for key in keys:
            with self.lend(key, timeout_s) as one:
                visit(one)

    def close(self) -> None:
        """Closes all objects; a later `lend` creates new ones. Idempotent."""
        with self._lock:
            places, self._places = self._places, {}
        for place in places.values():
            if place.one is not None:
                place.one.close()
