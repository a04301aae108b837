"""A workshop with customers and orders."""
