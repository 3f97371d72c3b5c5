"""Observing a run: counts, waits, events, the view and the verdict."""

from __future__ import annotations

from tengen.observe.busy import BusyTimes
from tengen.observe.curves.charts import open_charts
from tengen.observe.curves.config import ObserveConfig
from tengen.observe.events import EventWriter, read_events
from tengen.observe.hosts import Hosts, HostsLog, Place, read_hosts
from tengen.observe.progress import Progress, ServerProgress
from tengen.observe.run_view import RunView, read_progress
from tengen.observe.verdict import (
    Shares,
    StageTimes,
    at_once_verdict,
    environment_verdict,
    lighter_learning,
    room_verdict,
    verdict,
    waiting_verdict,
)
from tengen.observe.view import View, make_view

__all__ = [
    "BusyTimes",
    "EventWriter",
    "Hosts",
    "HostsLog",
    "ObserveConfig",
    "Place",
    "Progress",
    "RunView",
    "ServerProgress",
    "Shares",
    "StageTimes",
    "View",
    "at_once_verdict",
    "environment_verdict",
    "lighter_learning",
    "make_view",
    "open_charts",
    "read_events",
    "read_hosts",
    "read_progress",
    "room_verdict",
    "verdict",
    "waiting_verdict",
]
