"""Models: one request in, one completion out."""
