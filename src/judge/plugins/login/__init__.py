"""`wabe tasks login`: a log-in to a site is made once and saved, for tasks that need it."""
