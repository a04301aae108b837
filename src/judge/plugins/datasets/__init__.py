"""Published sets of tasks, read from the files of their owners, for `wabe tasks import`."""
