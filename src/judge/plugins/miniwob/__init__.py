"""MiniWoB++: its pages are served, and its tasks are imported."""
