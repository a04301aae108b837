"""Layouts of other tools."""
