"""What the readers of foreign files have in common: bounds, checksums, one error."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tengen import _core
from tengen.errors import RunError, os_reason

__all__ = ["OtherKindError", "check_crc", "damaged", "read_bounded", "reading"]

# Added to a checksum by whoever stores one beside what it is of.
_MASK_DELTA = 0xA282EAD8


class OtherKindError(ValueError):
    """A file seems whole, and was written otherwise; says what to do."""


def damaged(what: str, path: Path, reason: object) -> RunError:
    """Returns the error of a file that is not as it should be."""
    return RunError(
        f"{what} ({path}) is damaged or of another kind, {reason}; fetch it again"
    )


@contextmanager
def reading(what: str, path: Path) -> Iterator[None]:
    """Turns what the system or a reader refuses into the one line of an error.

    Raises:
        RunError: In place of OSError and ValueError.
    """
    try:
        yield
    except OSError as error:
        raise RunError(
            f"{what} ({path}) cannot be read, {os_reason(error)}; check the path"
        ) from error
    except OtherKindError as error:
        raise RunError(f"{what} ({path}) is of another kind, {error}") from error
    except ValueError as error:
        raise damaged(what, path, error) from error


def read_bounded(path: Path, most_bytes: int) -> bytes:
    """Returns a file's bytes.

    Raises:
        OSError: It cannot be read.
        ValueError: It has more than ``most_bytes``.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise ValueError(f"it has {size} bytes, and at most {most_bytes} are read")
        return file.read(most_bytes)


def check_crc(data: bytes | memoryview, stored: int, what: str) -> None:
    """Checks a masked CRC-32C.

    Source: TensorFlow, ``tensorflow/core/lib/hash/crc32c.h``: the checksum is turned
    right by 15 bits, and a constant is added.

    Args:
        data: What it is of.
        stored: The checksum in the file.
        what: For the message.

    Raises:
        ValueError: It is of other data.
    """
    crc = _core.crc32c(bytes(data))
    masked = ((crc >> 15 | crc << 17) + _MASK_DELTA) & 0xFFFFFFFF
    if masked != stored:
        raise ValueError(f"the checksum of {what} is wrong")
