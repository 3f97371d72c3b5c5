"""Refusal of ONNX files whose weights are in other files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tengen.errors import UsageError

__all__ = ["check_is_whole"]

# The key by which a tensor names another file; a graph without it needs no parsing.
_KEY = b"location"


def check_is_whole(path: Path) -> None:
    """Checks that an ONNX file has all of its tensors.

    A tensor may name any file of this machine, which a reader would open. What names a
    model is data: it names no files.

    Raises:
        UsageError: A tensor is in another file.
    """
    # What cannot be read or is no graph is refused by the reader, which says why.
    try:
        data = path.read_bytes()
    except OSError:
        return
    if _KEY not in data:
        return
    import onnx

    try:
        model = onnx.load_model_from_string(data)
    except Exception:
        return
    for tensor in _tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
            raise UsageError(
                f"graph ({path}) must hold its tensors itself, and "
                f"{tensor.name!r} is in another file; save it again as one file"
            )


def _tensors(message: Any) -> Iterator[Any]:
    """Yields every tensor in a message, whatever it is nested in."""
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        is_one = hasattr(value, "ListFields")
        for part in (value,) if is_one else value:
            if field.message_type.name == "TensorProto":
                yield part
            else:
                yield from _tensors(part)
