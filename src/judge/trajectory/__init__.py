"""Attempts on disk: the record, readers, and formats of other tools."""
