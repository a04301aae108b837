"""Tasks as Harbor task folders (`wabe export SCENARIO --format harbor`), in which the judge is a service over MCP."""
