"""`wabe look`: a page as participants see it."""
