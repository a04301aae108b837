"""The rules of version 1, for recordings that do not say who wrote or sent their content: the rules guess it."""
