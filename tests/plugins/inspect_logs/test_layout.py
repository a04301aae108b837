"""Runs as one log of Inspect: messages, scores and results, as its reader expects them."""

import json
import zipfile
from pathlib import Path
from typing import Any

from helpers.plugins import export_tasks
from helpers.results import a_result, a_step, a_verdict, write_attempt
from judge.plugins.inspect_logs.layout import FORMAT
from judge.records.steps import Outcome
from judge.store.layout import TaskStore
from shared.claims import ClaimedUsage

RUN = {"run_id": "r1", "scenario": {"name": "demo"}, "participants": {"white_agent": {"model": "openai:m"}}}
STEPS = (
    a_step(0),
    a_step(1, action=None, outcome=None, reply="???", feedback="No JSON in it."),
    a_step(2, outcome=Outcome(ok=False, message="no such element")),
    a_step(3, line="<page> -> FINISH"),
)


def exported(folder: Path, *changes: dict[str, Any]) -> dict[str, Any]:
    """The files of the log of a run with these attempts, by name."""
    stores = [TaskStore(folder / "run" / f"t{number}") for number, _ in enumerate(changes)]
    for store, change in zip(stores, changes, strict=True):
        write_attempt(store, a_result(store.name, **{"steps": STEPS, "final_answer": "42", **change}))
    writer = FORMAT.writer
    assert writer is not None
    assert writer.finish is not None
    folders = [each.folder for each in export_tasks(stores, folder / "out", writer=writer) if each.folder]
    writer.finish(folder / "out", folders, RUN)
    assert [path.name for path in (folder / "out").iterdir()] == ["r1.eval"]
    with zipfile.ZipFile(folder / "out" / "r1.eval") as log:
        return {name: json.loads(log.read(name)) for name in log.namelist()}


def test_a_run_is_one_log_with_a_sample_for_each_attempt(tmp_path: Path) -> None:
    usage = ClaimedUsage(basis="recorded", input=9, output=3)
    log = exported(
        tmp_path,
        {"verdict": a_verdict("success"), "claimed_usage": usage},
        {"verdict": a_verdict("failure")},
        {"stop_reason": "environment_fault", "error": "the site is down", "blame": "site"},
    )
    samples = [log[f"samples/t{number}_epoch_1.json"] for number in range(3)]
    assert [sample["scores"] and sample["scores"]["verdict"]["value"] for sample in samples] == [1.0, 0.0, {}]
    assert [sample.get("error", {}).get("message") for sample in samples] == [None, None, "site: the site is down"]
    assert samples[0]["model_usage"]["participant"]["total_tokens"] == 12
    assert [each["role"] for each in samples[0]["messages"]] == [
        *("user", "assistant", "tool", "assistant", "user", "assistant", "tool", "assistant", "tool", "assistant")
    ]
    first, _, result = samples[0]["messages"][:3]
    assert [part["type"] for part in first["content"]] == ["text", "image"]
    assert first["content"][1]["image"].startswith("data:image/jpeg;base64,")
    assert result["tool_call_id"] == samples[0]["messages"][1]["tool_calls"][0]["id"]
    assert samples[0]["messages"][6]["error"]["message"] == "no such element"
    header = log["header.json"]
    assert (header["eval"]["task"], header["eval"]["model"], header["eval"]["dataset"]["samples"]) == (
        "demo",
        "openai:m",
        3,
    )
    (score,) = header["results"]["scores"]
    assert (score["metrics"]["accuracy"]["value"], score["scored_samples"], score["unscored_samples"]) == (0.5, 2, 1)
    assert [each["completed"] for each in log["summaries.json"]] == [True, True, False]


def test_a_run_without_a_verdict_has_no_accuracy(tmp_path: Path) -> None:
    log = exported(tmp_path, {"verdict": None})
    assert log["header.json"]["results"]["scores"][0]["metrics"] == {}
