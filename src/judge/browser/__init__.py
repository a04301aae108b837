"""The browser under assessment: Playwright's MCP server, the offered tools, what a page shows."""
