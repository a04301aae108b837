"""Whether what a configuration names can work on this machine: the browser, the prompt set, the judge.

`wabe tasks validate`, `agentbeats-run` and the judge all ask here, so that none accepts what another refuses later.
A judge asks only after it has decided to trust the request: the answers tell which files it has.
"""

from judge.browser.chromium import configured_browser
from judge.config import RunConfig
from judge.judges.factory import METHODS, OFFLINE, check_judge, check_judge_model
from judge.judges.prompt_set import load_prompts
from shared.settings import Settings


def check_config(config: RunConfig, settings: Settings, *, with_key: bool = True) -> None:
    """Raises `ConfigError` for the first setting that cannot work here. Starts nothing and calls nothing.

    `with_key=False` leaves the judge model's key out: a scenario may be validated where it is not run.
    """
    check_judge_model(config, settings) if with_key else check_judge(config)
    if config.browser_path is not None:
        configured_browser(config.browser_path, settings)
    if config.prompts is not None:
        prompts = load_prompts(config.prompts)
        if config.judge_model != OFFLINE:
            method = METHODS[config.judge_method]
            prompts.check(method.prompts, method.reminders)
