"""Ratings of many players from their matches, and of models on a ladder of anchors."""
