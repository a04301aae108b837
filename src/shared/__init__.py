"""Records, protocols and clients that the judge and the participants share."""
