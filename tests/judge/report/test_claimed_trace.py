"""What an agent says it did for a step, on the page of the task."""

import json
from pathlib import Path

from helpers.runs import write_synthetic_run
from judge.report.build import make_report


def test_the_agents_own_account_stands_beside_the_step_as_a_claim_and_escaped(tmp_path: Path) -> None:
    store = write_synthetic_run(tmp_path / "out", tasks=1, steps=2)
    path = next(store.results.glob("*/result.json"))
    result = json.loads(path.read_text())
    spans = [
        {"name": "plan <b>", "start": 100.0, "end": 101.5, "input_tokens": 812, "output_tokens": 64, "text": "<i>"},
        {"name": "act", "start": 102.0, "end": 102.5},
    ]
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    result["steps"][0]["claimed_trace"] = {"traceparent": parent, "spans": spans}
    path.write_text(json.dumps(result))
    page = next((make_report([store], tmp_path / "report").parent / "tasks").glob("*.html")).read_text()
    first, second = page.split('id="step-2"')
    assert "The agent's own account" in first
    assert "(its claim)" in first
    assert "plan &lt;b&gt;" in first
    assert "812 tokens in, 64 out" in first
    assert "&lt;i&gt;" in first
    assert "0af7651916cd43dd8448eb211c80319c" in first
    assert "The agent's own account" not in second
