"""A scenario's tasks as environments for training: sessions in which a trainer is the participant."""
