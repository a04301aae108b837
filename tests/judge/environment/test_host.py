from judge.browser.playwright import replace_limit_s
from judge.config import RunConfig
from judge.environment.host import training_config

CLIENT_S = 60.0


def test_a_page_that_hangs_is_replaced_before_a_client_gives_up() -> None:
    limits = training_config(RunConfig(judge_model="offline"), None)
    # A slow action, an observation that takes a whole step, and then both tries to replace the page.
    slowest_s = limits.navigation_timeout_s + limits.step_timeout_s + 3 * replace_limit_s(limits)
    assert slowest_s < CLIENT_S
    assert 3 * replace_limit_s(limits) < limits.step_timeout_s
