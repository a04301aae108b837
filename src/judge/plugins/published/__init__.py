"""Makes a prompt set from a copy of the published source of Online-Mind2Web's evaluator."""
