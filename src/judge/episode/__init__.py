"""Playing tasks: one attempt, and the assessment that runs them all."""
