"""WebArena-Verified: its tasks are imported, and its own evaluator judges them."""
