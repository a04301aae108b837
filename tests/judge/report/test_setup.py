"""`run.json` as tables for people."""

from judge.report.setup import moment, setup_of

RECORD = {
    "schema_version": "x",
    "run_id": "r1",
    "started_at": 1_770_000_000,
    "resumed_at": None,
    "scenario": {"name": "demo", "sha256": "a" * 64},
    "participants": {"white_agent": "http://127.0.0.1:9019"},
    "identity": {"card_name": "replay", "model": None},
    "judge": {"method": "checks", "prompt_checksum": "b" * 64},
    "environment": {"browser": "Chromium 156"},
    "self_recorded": True,
    "config": {"max_steps": 3, "max_parallel": 4, "settle": "auto", "judge_model": "offline", "judge_votes": 5},
}


def test_facts_are_grouped_and_named_and_only_those_that_decided_are_in_front() -> None:
    result = setup_of(RECORD)
    assert result.decided == {
        "Participant": [("white agent", "http://127.0.0.1:9019"), ("card name", "replay")],
        "Judge": [("method", "checks")],
        "Browser": [("browser", "Chromium 156")],
        # Neither a default, nor how many tasks ran at once, nor the votes of a judge that was not asked.
        "Settings": [("max steps", "3")],
    }
    assert result.more["Run"] == [
        ("run id", "r1"),
        ("started at", "2026-02-02 02:40 UTC"),
        ("scenario name", "demo"),
        ("self recorded", "yes"),
    ]
    assert ("judge_votes", "5") in result.more["Configuration"]
    assert result.more["Checksums"] == [("scenario sha256", "a" * 64), ("judge prompt checksum", "b" * 64)]


def test_a_judge_without_a_model_has_rules_and_neither_prompts_nor_a_threshold() -> None:
    info = {"method": "checks", "model": "offline", "prompt_set": "none", "prompt_version": "3", "threshold": 3}
    assert setup_of({"judge_model": "offline", "judge": info}).decided["Judge"] == [
        ("method", "checks"),
        ("rules", "3"),
    ]
    request = info | {"method": "webjudge", "model": "openai:m", "prompt_set": "default"}
    messages = setup_of(
        {"judge_model": "openai:m", "judge": request, "config": {"judge_model": "openai:m", "judge_votes": 5}}
    )
    assert messages.decided["Judge"] == [(key.replace("_", " "), str(value)) for key, value in request.items()]
    assert messages.decided["Settings"] == [("judge votes", "5")]


def test_an_invalid_time_is_empty() -> None:
    assert [moment(value) for value in (None, "x", 1e30)] == ["", "", ""]
