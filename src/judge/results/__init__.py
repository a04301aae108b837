"""What a run amounts to: submission, leaderboard rows, comparison, verification."""
