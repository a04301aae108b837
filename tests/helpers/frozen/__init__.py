"""A site of hard cases over HTTPS, for archives: what it serves, and the walks through it."""
