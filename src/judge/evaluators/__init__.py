"""Evaluators: decide on recorded evidence, without a model."""
