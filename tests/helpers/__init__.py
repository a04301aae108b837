"""What several test modules share, in packages like those of `src`."""
