"""`wabe verify` and `wabe sign`: whether the files of a run are consistent, and a signature over them."""
