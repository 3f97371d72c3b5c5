"""Actors turn inference into actions and experience: by tree search or by the policy."""

from __future__ import annotations

from tengen.actors.selfplay import GenerationReport, SelfplayConfig, play_generation

__all__ = ["GenerationReport", "SelfplayConfig", "play_generation"]
