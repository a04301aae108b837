"""The guard: the only way from the browser to the network."""
