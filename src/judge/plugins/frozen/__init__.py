"""Frozen sites: websites recorded into an archive (WACZ), and attempts that are answered from it."""
