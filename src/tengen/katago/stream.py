"""Reads words and arrays of a KataGo network file sequentially.

A file consists of words separated by white space. In a binary file, an array is the
marker ``@BIN@`` followed by little-endian float32 numbers.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tengen.errors import UsageError
from tengen.run import OtherKindError, reading_file

_MAX_WEIGHTS = 1 << 29
_CHUNK_BYTES = 1 << 18
_MAX_WORD = 128
_MAX_SPACE = 1024
_MARK = b"@BIN@"
_SPACE = b" \t\r\n\v\f"


class NotSupportedError(OtherKindError):
    """A network file is valid, but tengen does not support its kind of network."""

    def __str__(self) -> str:
        return f"{super().__str__()}; choose a convolutional one of version 8 to 17"


class WeightStream:
    """Reads a network file sequentially, with a small buffer.

    All methods raise ValueError for invalid content, and OSError for read errors.

    Args:
        file: The decompressed file.
        is_binary: Whether the file's arrays are binary.
    """

    def __init__(self, file: BufferedIOBase, *, is_binary: bool) -> None:
        self._file = file
        self._is_binary = is_binary
        self._buffer = b""
        self._at = 0
        self._num_left = _MAX_WEIGHTS

    def word(self, what: str) -> str:
        """Returns the next word of the file.

        Args:
            what: What the word means, for error messages.
        """
        self._skip_space()
        found = bytearray()
        while (byte := self._peek()) and byte not in _SPACE:
            found += byte
            self._at += 1
            if len(found) > _MAX_WORD:
                raise ValueError(f"{what} is longer than {_MAX_WORD} characters")
        if not found:
            raise ValueError(f"it ends before {what}")
        try:
            return found.decode("ascii")
        except UnicodeDecodeError:
            raise ValueError(f"{what} is not plain text") from None

    def whole(self, what: str, low: int, high: int) -> int:
        """Returns the next word as an integer from ``low`` to ``high``."""
        word = self.word(what)
        number = int(word) if word.removeprefix("-").isdecimal() else None
        if number is None or not low <= number <= high:
            raise ValueError(f"{what} is {word}, not {low} to {high}")
        return number

    def positive(self, what: str) -> float:
        """Returns the next word as a finite positive number."""
        word = self.word(what)
        try:
            number = float(word)
        except ValueError:
            raise ValueError(f"{what} is {word}, not a number") from None
        if not (math.isfinite(number) and number > 0):
            raise ValueError(f"{what} is {word}, not above 0")
        return number

    def numbers(self, what: str, *shape: int) -> NDArray[np.float32]:
        """Returns the next array, which the file stores in C order."""
        count = math.prod(shape)
        self._num_left -= count
        if self._num_left < 0:
            raise ValueError(f"it has more than {_MAX_WEIGHTS} weights")
        flat = self._binary(what, count) if self._is_binary else self._text(what, count)
        if not np.isfinite(flat).all():
            raise ValueError(f"{what} has non-finite values")
        return flat.reshape(shape)

    def end(self) -> None:
        """Checks that only white space is left in the file."""
        self._skip_space()
        if self._peek():
            raise ValueError("it has data after the network")

    def _binary(self, what: str, count: int) -> NDArray[np.float32]:
        self._skip_space()
        if self._take(len(_MARK)) != _MARK:
            raise ValueError(f"{what} does not begin with {_MARK.decode()}")
        data = self._take(4 * count)
        if len(data) < 4 * count:
            raise ValueError(f"it ends inside {what}")
        return np.frombuffer(data, "<f4").astype(np.float32)

    def _text(self, what: str, count: int) -> NDArray[np.float32]:
        # Allocate while reading: a damaged file may declare a huge count.
        found: list[float] = []
        for _ in range(count):
            word = self.word(what)
            try:
                found.append(float(word))
            except ValueError:
                raise ValueError(f"{what} has {word}, which is not a number") from None
        with np.errstate(over="ignore"):
            return np.array(found, np.float64).astype(np.float32)

    def _skip_space(self) -> None:
        num_skipped = 0
        while (byte := self._peek()) and byte in _SPACE:
            self._at += 1
            num_skipped += 1
            if num_skipped > _MAX_SPACE:
                raise ValueError(f"it has more than {_MAX_SPACE} blanks in a row")

    def _peek(self) -> bytes:
        """Returns the next byte without consuming it; empty at the end of the file."""
        if self._at == len(self._buffer):
            self._buffer, self._at = self._file.read(_CHUNK_BYTES), 0
        return self._buffer[self._at : self._at + 1]

    def _take(self, count: int) -> bytes:
        """Returns the next ``count`` bytes; fewer at the end of the file."""
        found = bytearray()
        while len(found) < count and self._peek():
            part = self._buffer[self._at : self._at + count - len(found)]
            self._at += len(part)
            found += part
        return bytes(found)


def check_name(path: Path) -> str:
    """Returns the name of a network file in lower case, without ``.gz``.

    Raises:
        UsageError: The suffix is not ``.bin``, ``.txt``, ``.bin.gz`` or ``.txt.gz``.
    """
    plain = path.name.lower().removesuffix(".gz")
    if not plain.endswith((".bin", ".txt")):
        raise UsageError(
            f"KataGo network ({path}) must be a file .bin.gz or .txt.gz from KataGo; "
            "check the path"
        )
    return plain


@contextmanager
def open_stream(path: Path) -> Iterator[WeightStream]:
    """Opens a network file; converts read errors in the ``with`` block to UsageError.

    Args:
        path: A ``.bin.gz``, ``.txt.gz``, ``.bin`` or ``.txt`` file.

    Raises:
        UsageError: The file has an unknown suffix, cannot be read, or is invalid.
    """
    plain = check_name(path)
    is_packed = path.name.lower().endswith(".gz")
    with (
        reading_file("KataGo network", path, UsageError),
        _opened(path, is_packed) as file,
    ):
        yield WeightStream(file, is_binary=plain.endswith(".bin"))


def _opened(path: Path, is_packed: bool) -> BufferedIOBase:
    return gzip.open(path, "rb") if is_packed else open(path, "rb")
