"""Plug-ins: each folder here can be deleted together with its tests, and everything else still works."""
