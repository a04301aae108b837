"""ATIF, the agent trajectory interchange format of Harbor: trajectories are written and read in it."""
