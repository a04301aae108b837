"""Matching: which recorded answer a request gets, and how sure that is. Pure."""
