"""Access to language models: adapters, cache, limits and prices."""
