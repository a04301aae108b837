"""Checks that the browser, prompt set and judge in a configuration are usable on this machine.

`wabe tasks validate`, `agentbeats-run` and the judge share this check, so that none accepts what another refuses later.
The judge runs it only for trusted requests, because the error messages reveal which files exist.
"""

from judge.browser.installed import configured_browser
from judge.config import RunConfig
from judge.judges.methods import check_judge, check_judge_model, model_method
from judge.judges.prompt_set import load_prompts
from judge.records.verdicts import OFFLINE
from shared.llm.environment import require_key_log
from shared.settings import Settings
from shared.tls import require_certificates


def check_config(config: RunConfig, settings: Settings, *, with_key: bool = True) -> None:
    """Raise `ConfigError` for the first setting that cannot work here. Starts no process and sends no request.

    `with_key=False` ignores a missing key for the judge model, because a scenario may be validated on another machine.
    """
    # All of the judge's connections need TLS, also where they do not use it.
    require_key_log(settings.environ)
    require_certificates(settings.environ)
    check_judge_model(config, settings) if with_key else check_judge(config)
    if config.browser_path is not None:
        configured_browser(config.browser_path, settings)
    if config.prompts is not None:
        prompts = load_prompts(config.prompts)
        if config.judge_model != OFFLINE:
            method = model_method(config.judge_method)
            prompts.check(method.prompts, method.reminders, is_published=config.fidelity == "published")
