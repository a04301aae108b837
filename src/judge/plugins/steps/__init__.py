"""Step-level scoring: asks for the next action on recorded pages, with the true history."""
