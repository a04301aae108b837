"""The judge's vocabulary: tasks with their checks and log-ins, steps, verdicts, events."""
