"""`wabe new-agent`: a folder with a working agent, as a starting point for one's own."""
