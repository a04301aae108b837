"""Validates trajectories with Harbor's own models: prints one JSON object for each file that is named."""

import json
import sys
from pathlib import Path

from harbor.models.trajectories import Trajectory

for name in sys.argv[1:]:
    try:
        found = Trajectory.model_validate_json(Path(name).read_text(encoding="utf-8"))
    except ValueError as error:
        print(json.dumps({"error": str(error)[:500]}))
        continue
    calls = [call.function_name for step in found.steps for call in step.tool_calls or ()]
    print(json.dumps({"steps": len(found.steps), "calls": calls, "images": found.has_multimodal_content()}))
