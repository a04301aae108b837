"""webeval, Fara's evaluation framework: its trajectory folders are read and written."""
