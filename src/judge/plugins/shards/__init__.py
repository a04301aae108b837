"""`wabe merge`: the shards of an assessment become one run, or one submission."""
