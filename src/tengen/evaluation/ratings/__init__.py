"""Computes Elo ratings from match results, and rates models on a ladder of anchors."""
