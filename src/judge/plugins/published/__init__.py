"""The published source of Online-Mind2Web's evaluator: a prompt set is made from a copy of it."""
