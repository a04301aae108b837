"""Scenarios: what the TOML file and the A2A request hold, read and checked."""
