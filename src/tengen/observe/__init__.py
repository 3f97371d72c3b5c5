"""What a run tells about itself: counts, waits, events, the view and the verdict."""

from __future__ import annotations

from tengen.observe.events import EventWriter, read_events, read_progress
from tengen.observe.progress import Progress
from tengen.observe.verdict import Shares, verdict, waiting_verdict
from tengen.observe.view import View, make_view

__all__ = [
    "EventWriter",
    "Progress",
    "Shares",
    "View",
    "make_view",
    "read_events",
    "read_progress",
    "verdict",
    "waiting_verdict",
]
