"""Reads the histories that the library browser-use stores."""
