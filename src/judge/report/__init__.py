"""The report of a run: one folder that can be opened from disk, without a network."""
