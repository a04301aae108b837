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
    "config": {"max_steps": 3},
}


def test_facts_are_grouped_and_named_without_what_is_unset() -> None:
    assert setup_of(RECORD) == {
        "Run": [
            ("run id", "r1"),
            ("started at", "2026-02-02 02:40 UTC"),
            ("scenario name", "demo"),
            ("self recorded", "yes"),
        ],
        "Participant": [("white agent", "http://127.0.0.1:9019"), ("card name", "replay")],
        "Judge": [("method", "checks")],
        "Browser": [("browser", "Chromium 156")],
        "Checksums": [("scenario sha256", "a" * 64), ("judge prompt checksum", "b" * 64)],
    }


def test_an_invalid_time_is_empty() -> None:
    assert [moment(value) for value in (None, "x", 1e30)] == ["", "", ""]
