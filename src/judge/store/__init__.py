"""The run folder: its layout, its locks, and bounds for what is recorded."""

# Users import it from here.
from judge.trajectory.files import load_trajectory as load_trajectory
