"""The providers' computer-use tools, one module for each provider that has one, by its name."""
