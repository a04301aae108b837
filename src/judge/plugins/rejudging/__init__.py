"""Judges recorded attempts again: with another model, another method, several times, or with edited checks."""
