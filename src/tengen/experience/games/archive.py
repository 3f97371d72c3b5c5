"""The file format of a sealed segment: a zip of .npy columns with reproducible bytes.

``numpy.load`` can read the file. With ``deflates``, ``pack`` compresses each column
that becomes at least an eighth smaller, and stores all other columns uncompressed. Each
entry starts at a multiple of 64 bytes, and so does the array in an uncompressed entry.
File times and modes are constant, so equal columns give equal files if the version of
zlib is the same. The first entry, ``meta.json``, describes the columns.
"""

from __future__ import annotations

import io
import json
import os
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tengen.closable import Closable
from tengen.errors import RunError, UsageError, os_reason
from tengen.run import newer_schema

SCHEMA = 4
"""The schema version of written archives, and the newest version that can be read."""

_OLDEST_SCHEMA = 2  # the oldest readable version, without deflated columns and leads

_ALIGNMENT_BYTES = 64
_LOCAL_HEADER_BYTES = 30
_PADDING_FIELD = 0xD935  # the extra field that zip alignment tools use for padding
# A higher level saves a few percent of disk, but takes two to twenty times as long.
_DEFLATE_LEVEL = 1
_LEAST_GAIN = 1 / 8
_RAW_DEFLATE = -15  # zlib's window size for deflated data without a zlib header
# Limit of the inflated size of all columns (zip bombs) if the caller knows none: the
# larger of _MOST_BYTES and _MOST_GAIN times the file's size. No genuine large segment
# compresses better in total.
_MOST_BYTES = 1 << 26
_MOST_GAIN = 64
# Maximum size of meta.json; its parsed values need many times as much memory.
_MOST_META_BYTES = 1 << 20
# All exceptions that zipfile and json raise on damaged or malicious bytes.
_FOREIGN = (
    zipfile.BadZipFile,
    ValueError,
    NotImplementedError,
    OverflowError,
    RecursionError,
    struct.error,
)
_MAX_SHOWN = 100
_NARROWER = (np.uint8, np.uint16, np.uint32)


def pack(
    meta: Mapping[str, Any],
    columns: Mapping[str, NDArray[Any]],
    *,
    deflates: bool = False,
) -> bytes:
    """Returns the bytes of an archive of ``columns``, a pure function of the arguments.

    Unsigned columns are written in the narrowest unsigned type that fits their values.

    Args:
        meta: JSON values for ``meta.json``, to which ``pack`` adds ``schema``.
        columns: Arrays by name; arrays of objects are not supported.
        deflates: Whether to compress columns that become at least an eighth smaller.
    """
    text = json.dumps({**meta, "schema": SCHEMA}, sort_keys=True)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        _add(archive, buffer, "meta.json", text.encode())
        for name, column in columns.items():
            data = _npy(_narrow(column))
            how = _compression(data) if deflates else zipfile.ZIP_STORED
            _add(archive, buffer, f"{name}.npy", data, how)
    return buffer.getvalue()


class ArchiveReader(Closable):
    """A reader of an archive, which reads each column on request. Thread-safe.

    The reader uses pread instead of mmap, so that a file that vanishes from a shared
    filesystem raises an error instead of a signal.

    Args:
        path: The archive.
        most_bytes: Maximum size of the file and of all inflated columns, in bytes; None
            for a limit that depends on the file's size.

    Raises:
        UsageError: The file has an unsupported schema.
        RunError: The file is missing, truncated, damaged or too large.
    """

    noun: ClassVar[str] = "segment"
    """What the file is called in error messages."""

    def __init__(self, path: Path, *, most_bytes: int | None = None) -> None:
        self.path = path
        try:
            # Without O_NONBLOCK, opening a FIFO would wait for its writer.
            self._descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except (OSError, ValueError) as error:
            why = os_reason(error) if isinstance(error, OSError) else "invalid path"
            raise RunError(
                f"{self.noun} ({path}) cannot be opened, {why}; {self.advice(path)}"
            ) from error
        try:
            status = os.fstat(self._descriptor)
            self.size_bytes = status.st_size
            if not stat.S_ISREG(status.st_mode):
                raise ValueError("it is not a regular file")
            if most_bytes is None:
                most_bytes = max(_MOST_BYTES, _MOST_GAIN * self.size_bytes)
            if self.size_bytes > most_bytes:
                raise ValueError(f"it has more than {most_bytes} bytes")
            self._most_bytes = most_bytes
            with (
                open(self._descriptor, "rb", closefd=False) as file,
                zipfile.ZipFile(file) as archive,
            ):
                self._entries = {info.filename: info for info in archive.infolist()}
            columns = self._entries.keys() - {"meta.json"}
            self._num_bytes = sum(self._entries[name].file_size for name in columns)
            self.meta = self._read_meta()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise self._damaged(os_reason(error)) from error
            if isinstance(error, _FOREIGN):
                raise self._damaged(str(error)) from error
            raise

    @staticmethod
    def advice(path: Path) -> str:
        """Returns advice to the user for an error about a missing or damaged file."""
        return "restore it from a copy"

    def names(self) -> list[str]:
        """Returns the column names in the order of the archive."""
        files = [name for name in self._entries if name.endswith(".npy")]
        return [name.removesuffix(".npy") for name in files]

    def number(self, name: str) -> int:
        """Returns the value of ``name`` in ``meta.json``, an integer of at least 0.

        Raises:
            RunError: The value is missing or not an integer of at least 0.
        """
        number = self.meta.get(name)
        if type(number) is not int or number < 0:
            raise self._damaged(f"its {name} is not a number")
        return number

    def read(self, name: str) -> NDArray[Any]:
        """Returns one column in its stored dtype, after checking its CRC-32.

        Raises:
            RunError: The column is missing or its bytes are damaged.
        """
        data = self._bytes(f"{name}.npy")
        file = io.BytesIO(data)
        try:
            np.lib.format.read_magic(file)
            shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
            if fortran or dtype.kind not in "biuf" or min(shape, default=0) < 0:
                raise ValueError("not a plain array of numbers")
            array = np.frombuffer(data, dtype, offset=file.tell())
            return array.reshape(shape)
        # numpy parses the header as a Python literal, so the tokenizer may raise too.
        except (*_FOREIGN, SyntaxError, TypeError, tokenize.TokenError) as error:
            reason = " ".join(str(error).split())[:_MAX_SHOWN]
            raise self._damaged(f"column {name}: {reason}") from error

    def read_all(self) -> bytes:
        """Returns the bytes of the complete file."""
        return self._pread(0, self.size_bytes)

    def close(self) -> None:
        """Closes the file. A second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _read_meta(self) -> dict[str, Any]:
        meta = json.loads(self._bytes("meta.json"))
        if not isinstance(meta, dict) or type(meta.get("schema")) is not int:
            raise ValueError("meta.json has no schema")
        if meta["schema"] > SCHEMA:
            raise newer_schema(self.path, meta["schema"], SCHEMA)
        if meta["schema"] < _OLDEST_SCHEMA:
            raise UsageError(
                f"schema ({meta['schema']}) of {self.path} must be {_OLDEST_SCHEMA} to "
                f"{SCHEMA} for this version; use the tengen that made it, or start a "
                "new run"
            )
        return meta

    def _bytes(self, entry: str) -> bytes:
        if entry not in self._entries:
            raise self._damaged(f"{entry} is missing")
        info = self._entries[entry]
        header = self._pread(info.header_offset, _LOCAL_HEADER_BYTES)
        name_bytes, extra_bytes = struct.unpack_from("<HH", header, 26)
        start = info.header_offset + _LOCAL_HEADER_BYTES + name_bytes + extra_bytes
        if entry == "meta.json":
            num_bytes, most = info.file_size, _MOST_META_BYTES
        else:
            num_bytes, most = self._num_bytes, self._most_bytes
        if info.compress_size > self.size_bytes or num_bytes > most:
            raise self._damaged(f"{entry} declares an impossible size")
        data = self._pread(start, info.compress_size)
        if info.compress_type == zipfile.ZIP_DEFLATED:
            data = self._inflate(data, info)
        if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
            raise self._damaged(f"the CRC of {entry} is wrong")
        return data

    def _inflate(self, data: bytes, info: zipfile.ZipInfo) -> bytes:
        # Inflates at most the size in the entry's header, because damaged or malicious
        # data could fill the memory.
        try:
            stream = zlib.decompressobj(_RAW_DEFLATE)
            return stream.decompress(data, max(1, info.file_size))
        except zlib.error as error:
            raise self._damaged(f"{info.filename} cannot be decompressed") from error

    def _pread(self, offset: int, num_bytes: int) -> bytes:
        parts = []
        while num_bytes > 0:
            try:
                part = os.pread(self._descriptor, min(num_bytes, 1 << 30), offset)
            except (OSError, OverflowError) as error:
                why = os_reason(error) if isinstance(error, OSError) else str(error)
                raise self._damaged(why) from error
            if not part:
                raise self._damaged("it ends too early")
            parts.append(part)
            offset += len(part)
            num_bytes -= len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _damaged(self, reason: str) -> RunError:
        return RunError(
            f"{self.noun} ({self.path}) is damaged, {reason}; {self.advice(self.path)}"
        )


def _compression(data: bytes) -> int:
    """Returns the compression type for ``data``, after a trial compression."""
    most = (1 - _LEAST_GAIN) * len(data)
    is_worth_it = len(zlib.compress(data, _DEFLATE_LEVEL)) <= most
    return zipfile.ZIP_DEFLATED if is_worth_it else zipfile.ZIP_STORED


def _add(
    archive: zipfile.ZipFile,
    buffer: io.BytesIO,
    name: str,
    data: bytes,
    compression: int = zipfile.ZIP_STORED,
) -> None:
    """Adds an entry to the zip file, with its data aligned to 64 bytes."""
    info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
    info.create_system = 3
    info.external_attr = 0o644 << 16
    unpadded = buffer.tell() + _LOCAL_HEADER_BYTES + len(name) + 4
    num_bytes = -unpadded % _ALIGNMENT_BYTES
    info.extra = struct.pack("<HH", _PADDING_FIELD, num_bytes) + bytes(num_bytes)
    archive.writestr(info, data, compression, _DEFLATE_LEVEL)


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    if column.dtype.kind != "u":
        return column
    largest = int(column.max()) if column.size else 0
    for dtype in _NARROWER:
        if column.dtype.itemsize > np.dtype(dtype).itemsize and (
            largest <= np.iinfo(dtype).max
        ):
            return column.astype(dtype)
    return column


def _npy(column: NDArray[Any]) -> bytes:
    """Returns ``column`` in the format .npy 1.0, independently of numpy's version."""
    dtype = column.dtype.newbyteorder("<")
    text = (
        f"{{'descr': {dtype.str!r}, 'fortran_order': False, 'shape': {column.shape}, }}"
    )
    length = len(text) + 1
    length += -(10 + length) % _ALIGNMENT_BYTES
    header = b"\x93NUMPY\x01\x00" + struct.pack("<H", length)
    header += text.ljust(length - 1).encode() + b"\n"
    return header + np.ascontiguousarray(column, dtype).tobytes()
