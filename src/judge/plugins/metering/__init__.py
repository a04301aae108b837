"""A pass-through proxy that counts what a participant's model calls use and cost."""
