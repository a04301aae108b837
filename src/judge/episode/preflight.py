"""Checks whether the browser, prompt set and judge that a configuration names can work on this machine.

`wabe tasks validate`, `agentbeats-run` and the judge share this check, so that none accepts what another refuses later.
The judge runs it only for requests it trusts: the answers reveal which files exist.
"""

from judge.browser.chromium import configured_browser
from judge.config import RunConfig
from judge.judges.factory import METHODS, OFFLINE, check_judge, check_judge_model
from judge.judges.prompt_set import load_prompts
from shared.settings import Settings


def check_config(config: RunConfig, settings: Settings, *, with_key: bool = True) -> None:
    """Raise `ConfigError` for the first setting that cannot work here. Starts nothing and calls nothing.

    `with_key=False` ignores a missing key of the judge model: a scenario may be validated on another machine.
    """
    check_judge_model(config, settings) if with_key else check_judge(config)
    if config.browser_path is not None:
        configured_browser(config.browser_path, settings)
    if config.prompts is not None:
        prompts = load_prompts(config.prompts)
        if config.judge_model != OFFLINE:
            method = METHODS[config.judge_method]
            prompts.check(method.prompts, method.reminders, is_published=config.fidelity == "published")
