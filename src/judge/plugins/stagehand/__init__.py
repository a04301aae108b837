"""Stagehand's evaluations: the folders that they keep for their verifier are read."""
