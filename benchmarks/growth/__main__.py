"""What grows or is left behind: in long runs, in training episodes, and by clients that disappear."""

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from parts import run_part

run_part(FOLDER)
