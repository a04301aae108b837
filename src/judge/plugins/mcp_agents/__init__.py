"""The participant `mcp`: plays with a program that speaks MCP, such as a coding agent, one process for each attempt."""
