"""Frozen sites: records websites into an archive (WACZ), and answers attempts from it."""
