"""What sessions with other programs share: lines, clocks, searches within limits."""
