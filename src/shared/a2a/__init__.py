"""Agents over A2A: clients and servers, protocol 1.0 and 0.3."""
