import pytest
from hypothesis import given
from hypothesis import strategies as st

from judge.plugins.mcp_agents.usage import usage_in

PATHS = {"input": "usage.input_tokens", "cost_usd": "cost"}


@pytest.mark.parametrize(
    ("output", "paths", "expected"),
    [
        ('{"usage": {"input_tokens": 3}, "cost": 0.5}', PATHS, {"input": 3, "cost_usd": 0.5}),
        ('starting\n{"usage": {"input_tokens": 1}}\n{"usage": {"input_tokens": 4}}\n{}', PATHS, {"input": 4}),
        ('{"m": {"a": {"t": 1}, "b": {"t": 2}}}', {"input": "m.*.t"}, {"input": 3}),
        ('{"usage": {"input_tokens": true}, "cost": "1"}', PATHS, None),
        ('{"usage": []}\nno JSON\n{', PATHS, None),
        ("", PATHS, None),
    ],
)
def test_usage_is_read_from_the_last_object_that_has_it(output: str, paths: dict[str, str], expected: object) -> None:
    assert usage_in(output, paths) == expected


@given(st.text(alphabet='{}[]":,1a\n*.'), st.sampled_from(["a", "a.a", "*", "*.*", ""]))
def test_any_output_is_read_without_an_error(output: str, path: str) -> None:
    usage_in(output, {"input": path})
