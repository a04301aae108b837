"""MiniWoB++: serves its pages, and imports its tasks."""
