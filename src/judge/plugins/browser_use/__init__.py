"""browser-use: the histories that this library stores are read."""
