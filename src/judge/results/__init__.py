"""The results of a run: submission, leaderboard rows, comparison, verification."""
