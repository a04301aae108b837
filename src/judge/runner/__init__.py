"""Local runs: start the agents, follow the assessment, show the result."""
