"""Runs as logs of Inspect, the framework of the UK's AI Security Institute."""
