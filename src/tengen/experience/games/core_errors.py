"""Turns errors of the native store into tengen's own errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tengen import _core
from tengen.errors import DiskFullError, RunError, UsageError

__all__ = ["core_errors"]


@contextmanager
def core_errors() -> Iterator[None]:
    """Raises the core's errors as UsageError (another schema) or RunError.

    A full disk raises DiskFullError.
    """
    try:
        yield
    except _core.SchemaError as error:
        raise UsageError(str(error)) from error
    except _core.DiskFullError as error:
        raise DiskFullError(str(error)) from error
    except _core.CoreError as error:
        raise RunError(str(error)) from error
