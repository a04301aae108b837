"""What one judge takes on, and which settings of a request are not a stranger's to make."""

import pytest

from judge.config import RunConfig
from judge.server.limits import ServiceLimits, settings_of_the_host
from shared.errors import ConfigError


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ()),
        ({"max_steps": 3, "judge_model": "offline"}, ()),
        ({"browser_path": "/bin/sh"}, ("browser_path",)),
        ({"judge_base_url": "http://collector.test/"}, ("judge_base_url",)),
        ({"run_id": "20260101-1", "prompts": "/etc"}, ("prompts", "run_id")),
        ({"prices": "/etc/passwd"}, ("prices",)),
        ({"browser": "headed"}, ("browser",)),
        ({"browser": "headless", "headless": "new"}, ("headless",)),
        ({"upstream_proxy": "http://10.0.0.1:80", "upstream_resolves": True}, ("upstream_proxy", "upstream_resolves")),
        ({"site_restarts": {"http://127.0.0.1:1": "http://10.0.0.1/admin"}}, ("site_restarts",)),
        ({"site_instances": {"http://shop.example": ["http://10.0.0.1/"]}}, ("site_instances",)),
    ],
)
def test_settings_that_reach_the_judges_own_machine_are_recognised(
    changes: dict[str, object], expected: tuple[str, ...]
) -> None:
    assert settings_of_the_host(RunConfig.model_validate(changes)) == expected


@pytest.mark.parametrize(
    ("allowed", "url", "is_allowed"),
    [
        ((), "http://anywhere.test:1/", True),
        (("agents.test",), "http://agents.test:9019/", True),
        (("agents.test:9019",), "http://agents.test:9019/", True),
        (("agents.test:9019",), "http://agents.test:22/", False),
        (("agents.test",), "http://agents.test.evil.test/", False),
        (("agents.test",), "http://evil.test/?agents.test", False),
        (("agents.test",), "http://agents.test@evil.test/", False),
    ],
)
def test_only_listed_participants_are_dialled(allowed: tuple[str, ...], url: str, is_allowed: bool) -> None:
    assert ServiceLimits(allowed_participants=allowed).allows(url) is is_allowed


def test_the_owners_limit_of_steps_counts_every_action_of_a_reply() -> None:
    limits = ServiceLimits(max_steps=30)
    limits.check(RunConfig(max_steps=10, max_actions=3), tasks=1)
    with pytest.raises(ConfigError, match=r"config.max_steps × max_actions is 33, and this judge allows 30 at most"):
        limits.check(RunConfig(max_steps=11, max_actions=3), tasks=1)
