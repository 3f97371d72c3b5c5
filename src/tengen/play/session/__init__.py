"""Parts of sessions with other programs: lines, clocks, searches within limits."""
