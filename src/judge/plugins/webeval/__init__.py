"""Reads and writes the trajectory folders of webeval, Fara's evaluation framework."""
