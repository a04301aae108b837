"""What is lost when a run, a matrix or a judge service is killed and goes on."""

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from parts import run_part

run_part(FOLDER)
