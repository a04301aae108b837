"""`wabe export`: runs in another benchmark's layout, as tables or films, and tasks for others to play."""
