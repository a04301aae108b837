"""Names of judges, and what their verdicts cost together."""

from hypothesis import given
from hypothesis import strategies as st

from helpers.results import JUDGE, a_verdict
from judge.results.given_verdicts import cost_of, given_verdict_of, judge_names, judged_by, plain_name
from shared.models import TokenUsage

MODEL = JUDGE.model_copy(update={"model": "openai:gpt-4.1-mini"})


def test_method_and_model_come_first() -> None:
    assert plain_name(MODEL) == "webjudge · openai:gpt-4.1-mini"
    assert plain_name(JUDGE.model_copy(update={"method": "checks"})) == "checks"
    assert plain_name(MODEL.model_copy(update={"fidelity": "published"})).endswith(" · published fidelity")
    assert plain_name(JUDGE, scenario="my.toml") == "webjudge · tasks of my.toml"


def test_the_digest_is_shown_only_where_two_judges_would_have_the_same_name() -> None:
    names = judge_names({"w-0123456789ab": "w", "w-01234567ffff": "w", "c-1": "c"})
    assert [str(name) for name in names.values()] == ["w (012345678)", "w (01234567f)", "c"]


def test_a_judge_that_was_asked_again_keeps_its_name() -> None:
    names = judge_names({"w-0123456789ab": "w", "w-0123456789ab.r2": "w"})
    assert set(names.values()) == {("w", "")}


@given(digests=st.sets(st.text("0123456789abcdef", min_size=12, max_size=12), min_size=1, max_size=20))
def test_no_two_judges_have_the_same_name(digests: set[str]) -> None:
    names = judge_names({f"w-{digest}": "w" for digest in digests})
    assert len({str(name) for name in names.values()}) == len(digests)


def test_verdicts_of_a_judge_are_added_up() -> None:
    verdicts = [a_verdict(cost_usd=0.25), a_verdict(cost_usd=0.5), a_verdict(cost_usd=None, token_usage=TokenUsage())]
    given_verdicts = [
        given_verdict_of(f"w-1{repeat}", each) for repeat, each in zip(("", ".r2", ".r3"), verdicts, strict=True)
    ]
    (judged,) = judged_by(given_verdicts)
    # A verdict without a call costs nothing, even if the price is unknown.
    assert (judged.judge, judged.verdicts, judged.times, judged.cost_usd) == ("w-1", 3, 3, 0.75)
    assert cost_of([*given_verdicts, given_verdict_of("w-1", a_verdict(cost_usd=None))]) is None
