"""Stand-ins for the providers of models, which log what they report."""
