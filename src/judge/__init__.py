"""The judge (green agent): drives the browser, records trajectories, judges them."""
