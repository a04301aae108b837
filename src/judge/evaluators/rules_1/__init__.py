"""The rules of version 1, for recordings without provenance: they give the same verdicts as when they were made."""
