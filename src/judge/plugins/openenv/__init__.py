"""Serves a scenario's tasks as environments for training, over OpenEnv's wire."""
