"""The judge as an A2A server."""
