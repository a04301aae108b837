"""`wabe runs` and `wabe view`: all runs of this machine, with filters, trends, tags and notes."""
