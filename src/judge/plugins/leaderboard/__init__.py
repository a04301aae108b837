"""`wabe leaderboard`: the rows of submission files by the SQL of a leaderboard page, and that page."""
