"""Judge methods behind the interface in `judge.judges.base`."""
