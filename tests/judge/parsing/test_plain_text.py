"""Normalising a judge model's reply."""

import pytest

from judge.parsing.plain_text import plain_text


@pytest.mark.parametrize(
    ("reply", "plain"),
    [
        ("Score：４", "Score:4"),
        ("Status: ｓｕｃｃｅｓｓ", "Status: success"),
        ("Score: ④", "Score: 4"),
        ("Score: 4\ufe0f\u20e3", "Score: 4"),
        ("Score: −2", "Score: -2"),
        ("∗∗Score∗∗: 4", "**Score**: 4"),
        ("__Score__: _4_", "**Score**: *4*"),
        ("final_score: 4, a__b", "final_score: 4, a__b"),
        ("Score\u200b:\u00a04", "Score: 4"),
        ("Score:&nbsp;4", "Score: 4"),
        ("<b>Score:</b> <em>4</em>", "Score: 4"),
        ("Seen.<score>4</score>", "Seen.\nscore: 4\n"),
        ("a<br/>b", "a\nb"),
        ("Status: <success|failure>", "Status: <success|failure>"),
        ("Score: ~~4~~ 3", "Score:  3"),
    ],
)
def test_a_reply_is_normalised(reply: str, plain: str) -> None:
    assert plain_text(reply) == plain
