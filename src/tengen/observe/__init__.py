"""Monitoring of runs: events, progress, live view, status, curves and bottlenecks."""

from __future__ import annotations

from tengen.observe.curves.charts import ObserveConfig, open_charts
from tengen.observe.events import EventWriter, read_events
from tengen.observe.hosts import Hosts, HostsLog, Place, read_hosts
from tengen.observe.progress import Progress, ServerProgress
from tengen.observe.run_view import RunView, read_progress
from tengen.observe.verdict import (
    at_once_verdict,
    batch_fill,
    environment_verdict,
    lighter_learning,
    room_verdict,
    verdict,
    waiting_verdict,
)
from tengen.observe.view import OnProgress, View, make_view, watched

__all__ = [
    "EventWriter",
    "Hosts",
    "HostsLog",
    "ObserveConfig",
    "OnProgress",
    "Place",
    "Progress",
    "RunView",
    "ServerProgress",
    "View",
    "at_once_verdict",
    "batch_fill",
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
    "watched",
]
