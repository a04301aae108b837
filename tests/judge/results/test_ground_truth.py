"""Where the verdicts on one attempt differ from ground truth."""

from helpers.results import JUDGE, a_verdict, by_checks
from judge.records.verdicts import NO_PROMPTS
from judge.results.ground_truth import differences_of

OAK = {"check": "check 1 (element)", "description": "Oak is chosen", "expected": "[checked]", "found": "nothing"}
BY_CODE = JUDGE.model_copy(update={"method": "webarena_verified", "prompt_set": NO_PROMPTS})


def test_the_most_trusted_verdict_of_an_attempt_is_the_ground_truth() -> None:
    verdicts = {
        "webarena_verified-1": a_verdict("success", judge=BY_CODE),
        "webjudge-1": a_verdict("success"),
        "checks-1": by_checks("failure", OAK),
    }
    assert [each.judge_id for each in differences_of("t", verdicts)] == ["webarena_verified-1", "webjudge-1"]
    del verdicts["checks-1"]
    assert differences_of("t", verdicts) == ()
