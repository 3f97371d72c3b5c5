"""Rates players from match results, and models on a ladder of anchors."""
