"""`wabe tasks seal`: encrypts the tasks of a scenario into one file, which only a judge with the key can play."""
