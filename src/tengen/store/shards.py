"""One view of a store whose items lie on several servers."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tengen import _core
from tengen.config import check
from tengen.errors import RunError, TengenError, TengenWarning, UsageError
from tengen.store.backend import SamplerCore, StoreBackend, TableEntry
from tengen.store.shard_sampler import ShardSampler
from tengen.transport import NoAnswer

__all__ = ["Shard", "Shards"]

# Seconds between two questions to a server: whether it lives and what it holds.
_LOOK_S = 1.0
# A key of a shard has 56 bits, and one of all shards 63.
_MAX_SHARDS = 128


class Shard:
    """One of a store's servers, which answers or is missing. Thread-safe.

    Args:
        name: Its address.
        connect: Makes a connection; raises RunError if nothing answers.
    """

    def __init__(self, name: str, connect: Callable[[], StoreBackend]) -> None:
        self.name = name
        self.sizes: dict[str, int] = {}
        self.num_joins = 0
        self._connect = connect
        self._backend: StoreBackend | None = None
        self._incarnation = ""
        self._entries: dict[str, TableEntry] = {}
        self._lock = threading.Lock()

    @property
    def is_missing(self) -> bool:
        """Whether the server does not answer."""
        return self._backend is None

    def backend(self) -> StoreBackend:
        """Returns the connection to the server.

        Raises:
            RunError: The server is missing.
        """
        backend = self._backend
        if backend is None:
            raise RunError(
                f"shard ({self.name}) does not answer; start it again, or wait for it"
            )
        return backend

    def entry(self, table: str) -> TableEntry:
        """Returns the server's own entry of a table."""
        return self._entries[table]

    def join(self, tables: Mapping[str, TableEntry] | None) -> dict[str, TableEntry]:
        """Connects to the server, and returns its tables.

        Args:
            tables: The tables of the other shards; None for the first shard.

        Raises:
            RunError: The server does not answer.
            UsageError: The server's tables have other columns.
        """
        backend = self._connect()
        entries = {entry.config.name: entry for entry in backend.tables()}
        for name, entry in (tables or {}).items():
            own = entries.get(name)
            if own is None or _steps_of(own) != _steps_of(entry):
                raise UsageError(
                    f"shard ({self.name}) must have table {name} with the columns of "
                    f"the others; make all shards from one config"
                )
        incarnation = backend.command("incarnation", {})
        sizes = backend.command("sizes", {})
        with self._lock:
            self._entries = entries
            self._incarnation = incarnation
            self._take(sizes)
            self.num_joins += 1
            self._backend = backend
        return entries

    def look(self, timeout_s: float | None = None) -> None:
        """Asks the server what it holds; marks it as missing if it does not answer."""
        try:
            sizes = self.backend().command("sizes", {}, timeout_s)
        except TengenError:
            self.lose(self.num_joins)
            return
        with self._lock:
            self._take(sizes)

    def serves(self, num_joins: int) -> bool:
        """Returns whether the store found by that join still serves."""
        with self._lock:
            backend, incarnation = self._backend, self._incarnation
            if backend is None or self.num_joins != num_joins:
                return False
        try:
            return bool(backend.command("incarnation", {}) == incarnation)
        except TengenError:
            return False

    def lose(self, num_joins: int) -> None:
        """Marks the connection made by that join as gone."""
        with self._lock:
            if self._backend is None or self.num_joins != num_joins:
                return
            # Warn before anything continues without the server.
            try:
                warnings.warn(
                    f"shard ({self.name}) does not answer; its "
                    f"{sum(self.sizes.values())} items are missing until it is back",
                    TengenWarning,
                    stacklevel=2,
                )
            finally:
                self._backend = None

    def _take(self, sizes: list[int]) -> None:
        by_number = {entry.number: name for name, entry in self._entries.items()}
        self.sizes = {by_number[i]: size for i, size in enumerate(sizes)}


class Shards:
    """The backend of a store that lies on several servers.

    The SHA-256 of a writer's name chooses the server for its items. Batches come from
    all servers in proportion to their items (`ShardSampler`). Other commands go to
    every server. If a server is lost, the others go on serving, and it is joined again
    when it is back.

    Args:
        connect: For each server its address and a function that connects to it; in the
            same order for every client.

    Raises:
        UsageError: No server is named, one is named twice, or one refuses.
        RunError: No server answers.
    """

    def __init__(
        self, connect: Sequence[tuple[str, Callable[[], StoreBackend]]]
    ) -> None:
        if not connect:
            raise UsageError("address (none) must be at least one; name the servers")
        check(
            len(connect) <= _MAX_SHARDS,
            "address",
            f"{len(connect)} shards",
            f"must be at most {_MAX_SHARDS}, as a key says its shard; use larger ones",
        )
        names = [name for name, _ in connect]
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"address ({name}) must be named once; name another")
        self._shards = [Shard(name, make) for name, make in connect]
        tables: dict[str, TableEntry] | None = None
        lost: RunError | None = None
        for shard in self._shards:
            try:
                own = shard.join(tables)
                tables = tables or own
            except RunError as error:
                lost = error
                warnings.warn(
                    f"shard ({shard.name}) does not answer; its items are missing "
                    f"until it is back",
                    TengenWarning,
                    stacklevel=4,
                )
        if tables is None:
            assert lost is not None
            raise lost
        self._tables = tables
        self._names = {entry.number: name for name, entry in tables.items()}
        self._leases = itertools.count()
        self._is_closed = threading.Event()
        for shard in self._shards:
            threading.Thread(
                target=self._watch, args=(shard,), name="store-shard", daemon=True
            ).start()

    def tables(self) -> list[TableEntry]:
        """Returns the tables in the order of their numbers."""
        return list(self._tables.values())

    def missing(self) -> dict[str, float]:
        """Returns the shards that do not answer, with their share of the items."""
        held = [sum(shard.sizes.values()) for shard in self._shards]
        whole = max(1, sum(held))
        return {
            shard.name: size / whole
            for shard, size in zip(self._shards, held, strict=True)
            if shard.is_missing
        }

    def open_writer(
        self,
        name: str,
        entry: TableEntry,
        max_item_steps: int,
        timeout_s: float | None = None,
    ) -> _core.ReplayWriter:
        """Returns a writer of the table's steps, on the server for its name."""
        shard = self._shards[shard_of(name, len(self._shards))]
        own = shard.entry(entry.config.name) if not shard.is_missing else entry
        return shard.backend().open_writer(name, own, max_item_steps, timeout_s)

    def open_sampler(
        self,
        entry: TableEntry,
        num_samples: int,
        num_ahead: int,
        timeout_s: float | None = None,
    ) -> SamplerCore:
        """Returns a sampler of the table on all servers, for one thread."""
        for shard in self._shards:
            if not shard.is_missing:
                shard.look(timeout_s)
        return ShardSampler(
            self._shards,
            entry.config.name,
            num_samples,
            num_ahead,
            self._leases,
            timeout_s,
        )

    def command(
        self, name: str, arguments: Mapping[str, Any], timeout_s: float | None = None
    ) -> Any:
        """Runs one of the rare commands on every server that answers."""
        if name == "begin_checkpoint":
            # A checkpoint that lacks a server is no checkpoint.
            return [
                shard.backend().command(name, {}, timeout_s) for shard in self._shards
            ]
        if name == "wait_checkpoint":
            return self._wait_checkpoint(answer_s=timeout_s, **arguments)
        if name in ("sessions", "replicas", "checkpoints", "room"):
            told = self._ask_all(name, lambda _: arguments, timeout_s)
            if name in ("checkpoints", "room"):
                return told
            return [one for some in told for one in some]
        rest = dict(arguments)
        table = self._names[rest.pop("table")]

        def own(number: int) -> dict[str, Any]:
            keys = self._own_keys(rest, number) if "keys" in rest else {}
            return {"table": self._shards[number].entry(table).number, **rest, **keys}

        answers = self._ask_all(name, own, timeout_s)
        if name == "describe":
            return self._described(answers)
        return sum(answers) if name == "erase" else None

    def _ask_all(
        self,
        name: str,
        arguments_of: Callable[[int], Mapping[str, Any]],
        timeout_s: float | None,
    ) -> list[Any]:
        """Returns the answers of all servers except those lost during the command."""
        answers = []
        for number, shard in enumerate(self._shards):
            num_joins = shard.num_joins
            if shard.is_missing:
                continue
            try:
                answers.append(
                    shard.backend().command(name, arguments_of(number), timeout_s)
                )
            except RunError as error:
                # A closing server answers with an error.
                if not isinstance(error, NoAnswer) and shard.serves(num_joins):
                    raise
                shard.lose(num_joins)
        return answers

    def check_open(self) -> None:
        """Raises UsageError if the backend was closed."""
        if self._is_closed.is_set():
            names = ", ".join(shard.name for shard in self._shards)
            raise UsageError(f"store ({names}, closed) must be open; connect again")

    def close(self) -> None:
        """Ends the connections."""
        self._is_closed.set()
        for shard in self._shards:
            if not shard.is_missing:
                shard.backend().close()

    def _wait_checkpoint(
        self, number: Sequence[int], timeout_s: float, answer_s: float | None
    ) -> bool | None:
        answers = [
            shard.backend().command(
                "wait_checkpoint", {"number": one, "timeout_s": timeout_s}, answer_s
            )
            for shard, one in zip(self._shards, number, strict=True)
        ]
        return None if None in answers else all(answers)

    def _own_keys(self, arguments: Mapping[str, Any], number: int) -> dict[str, Any]:
        """Returns the arguments with only the keys, and their values, of one server."""
        keys = np.asarray(arguments["keys"], np.int64)
        is_own = keys % len(self._shards) == number
        own = {"keys": (keys[is_own] // len(self._shards)).tolist()}
        if "priorities" in arguments:
            own["priorities"] = np.asarray(arguments["priorities"])[is_own].tolist()
        return own

    def _described(self, answers: list[dict[str, Any]]) -> dict[str, Any]:
        whole: dict[str, Any] = {}
        for answer in answers:
            for name, value in answer.items():
                if name == "max_priority":
                    whole[name] = max(whole.get(name, 0), value)
                elif name == "limits":
                    whole.setdefault(name, value)
                elif value is None or whole.get(name, 0) is None:
                    whole[name] = None  # a server has no bound
                elif isinstance(value, str):
                    whole[name] = whole.get(name) or value
                else:
                    whole[name] = whole.get(name, 0) + value
        return {**whole, "missing_shards": list(self.missing())}

    def _watch(self, shard: Shard) -> None:
        while not self._is_closed.wait(_LOOK_S):
            if not shard.is_missing:
                shard.look()
                continue
            with contextlib.suppress(TengenError):
                shard.join(self._tables)


def shard_of(writer: str, num_shards: int) -> int:
    """Returns the number of the server that a writer's items go to."""
    digest = hashlib.sha256(writer.encode()).digest()
    return int.from_bytes(digest[:8], "big") % num_shards


def _steps_of(entry: TableEntry) -> tuple[Any, int, int]:
    config = entry.config
    return config.native_columns(), config.num_steps, config.chunk_length
