"""Rates players by their match results, and models on a ladder of anchors."""
