"""Runs in which a person plays: the settings that they need, and where their page is."""

import shlex
from collections.abc import Iterator
from urllib.parse import urljoin

from judge.config import MAX_ATTEMPT_S, RunConfig
from judge.scenario.models import Scenario
from shared.participants import HUMAN, PLAY_PATH
from shared.text import counted

_MARGIN_S = 60.0


def for_a_person(config: RunConfig) -> RunConfig:
    """The settings with points and boxes, one task at a time, and the longest limits that a judge accepts.

    They are not validated: a scenario's pauses may leave no time.
    """
    task_s = MAX_ATTEMPT_S - config.max_steps * config.step_delay - _MARGIN_S
    return config.model_copy(
        update={
            "actions": "both",
            "snapshot_boxes": True,
            "max_parallel": 1,
            # Each within the next one.
            "reply_timeout_s": task_s - 2 * _MARGIN_S,
            "step_timeout_s": task_s - _MARGIN_S,
            "task_timeout_s": task_s,
            "attempt_timeout_s": MAX_ATTEMPT_S,
        }
    )


def note_for(config: RunConfig) -> str:
    """What the page says about the limits."""
    replies, hours = counted(config.max_steps, "reply", "replies"), config.reply_timeout_s / 3600
    return f"At most {replies}, and {hours:.1f} hours: the judge's longest time limits."


def pages_of_people(scenario: Scenario) -> Iterator[str]:
    """For each participant that is a person, a line that says where they play."""
    for agent in scenario.participants:
        if shlex.split(agent.cmd or "")[:3] == ["wabe", "participant", HUMAN] and agent.endpoint:
            yield f"A person plays as {agent.role}: open {urljoin(agent.endpoint, PLAY_PATH)}"
