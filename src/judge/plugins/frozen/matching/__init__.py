"""Matching: which recorded answer a request gets, and how certain the match is. Pure."""
