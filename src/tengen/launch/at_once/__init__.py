"""The schedule in which all roles work at once, and its processes."""

from __future__ import annotations

from tengen.launch.at_once.schedule import run_at_once

__all__ = ["run_at_once"]
