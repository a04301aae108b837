"""Programs that speak MCP as participants: each attempt is a process that finds the task's tools on an MCP server."""
