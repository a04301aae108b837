"""Ray: one command plays all shards of a run on a machine or a cluster."""
