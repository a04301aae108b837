"""Scenario texts for tests, and a call's outcome with its complaint."""

from collections.abc import Callable
from typing import Any

from shared.errors import ConfigError

GOOD = """
[green_agent]
endpoint = "http://127.0.0.1:9009"
cmd = "wabe serve --port 9009"

[[participants]]
role = "white_agent"
endpoint = "http://127.0.0.1:9019"
cmd = "wabe participant replay --port 9019"
agentbeats_id = "id-1"
env = { KEY = "${KEY}", FIXED = "1" }

[[sites]]
name = "shop"
endpoint = "http://127.0.0.1:9100"
cmd = "python site.py 9100"

[config]
max_steps = 7

[[tasks]]
task_id = "a-1"
website = "http://127.0.0.1:9100/"
task = "Find the red shoes."
level = "easy"
reference_length = 4
key_points = ["red shoes are shown"]

[[tasks]]
task_id = "b_2"
website = "https://www.example.org/"
task = "Read the first page."
"""
AGENTS = '[green_agent]\n[[participants]]\nrole = "p"\n'
TASK = '[[tasks]]\ntask_id = "t"\nwebsite = "https://example.org/"\ntask = "x"\n'


def value_or_complaint(call: Callable[[], Any]) -> tuple[Any, str]:
    """What the call gives, and its complaint; anything but a `ConfigError` goes through."""
    try:
        return call(), ""
    except ConfigError as error:
        return None, str(error)
