"""The progress bar of `wabe score`."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from judge.config import RunConfig
from judge.plugins.rejudging import costs as score_costs
from judge.plugins.rejudging.costs import Costs, expectation
from judge.plugins.rejudging.expected import ExpectedCost
from shared.models import TokenUsage


def test_the_bar_shows_the_money_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    output = io.StringIO()
    console = Console(file=output, force_terminal=True, width=100)
    monkeypatch.setattr(score_costs, "Console", lambda **_: console)
    costs = Costs([Path("t")], RunConfig(), is_quiet=False)
    costs.expected = ExpectedCost(trajectories=2, verdicts=2, calls=6, tokens=600, cost_usd=0.06)
    with costs.progress(2) as done:
        costs.spending.add(TokenUsage(calls=3, input=300), 0.025)
        done()
    assert "1/2" in output.getvalue()
    assert "3 calls, $0.0250 of about $0.0600" in output.getvalue()


def test_without_a_terminal_or_anything_to_ask_there_is_no_bar(capsys: pytest.CaptureFixture[str]) -> None:
    costs = Costs([Path("t")], RunConfig(), is_quiet=False)
    costs.expected = ExpectedCost(trajectories=2, verdicts=2, calls=6)
    with costs.progress(2) as done:
        done()
    assert capsys.readouterr() == ("", "")


def test_an_unknown_price_is_not_zero() -> None:
    line = expectation(ExpectedCost(trajectories=1, verdicts=1, calls=3, tokens=600, cost_usd=None))
    assert "about 3 calls, 600 tokens, price unknown (estimated without earlier calls; cached replies are free)" in line
