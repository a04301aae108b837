"""Which tasks on live websites are stale: their reference scripts are played, and compared with the last time."""
