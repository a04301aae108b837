"""WebArena-Verified: imports its tasks, and judges them with its evaluator."""
