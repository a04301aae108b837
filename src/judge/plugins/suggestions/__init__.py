"""`wabe checks suggest`, `wabe tasks script` and `wabe tasks record`: a task is written from a recorded attempt."""
