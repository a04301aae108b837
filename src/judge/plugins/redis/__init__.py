"""Redis: rate limits, budget and replies that all shards of a run share."""
