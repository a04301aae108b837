"""Frozen sites: how they replace the live ones, three searches for wrong answers, and a later day."""

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
sys.path.insert(0, str(FOLDER.parent))

from parts import run_part

run_part(FOLDER)
