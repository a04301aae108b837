"""The rules of version 1, for recordings that do not say who wrote or sent what is in them: they guess it."""
