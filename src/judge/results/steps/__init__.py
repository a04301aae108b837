"""Step-level scoring: a participant chooses the next action on recorded pages, with the true history each time."""
