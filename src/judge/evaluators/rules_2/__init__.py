"""The rules of version 2, for recordings that say which elements include typed text, but not which characters."""
