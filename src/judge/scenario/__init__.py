"""Scenarios: reading and validating TOML files and A2A requests."""
