"""The settings of a run: the scenario's, with the options and the environment applied, and what they need."""

import shlex
from pathlib import Path
from typing import Any

from judge.browser.display import require_display
from judge.browser.installed import find_browser, wanted_by
from judge.config import CONFIG, RunConfig
from judge.episode.preflight import check_config
from judge.runner.options import declared_options
from judge.runner.start import Start
from judge.scenario.logins import OPERATORS_ADDRESSES, with_addresses
from judge.scenario.models import Scenario, resolved
from judge.scenario.pairs import read_unseen
from judge.server.limits import settings_of_the_host
from shared.errors import ConfigError
from shared.plugins import plugins
from shared.settings import Settings
from shared.validation import validated


def configured(start: Start) -> RunConfig:
    """The scenario's settings with the options applied; only a judge started here gets the host's.

    Raises `ConfigError`.
    """
    scenario, options, settings = start.scenario, start.options, start.settings
    config: dict[str, Any] = scenario.config.model_dump(exclude_unset=True, exclude={"run_id"})
    if secrets := scenario.config.secrets:
        where = f"{scenario.path}: [config], key 'secrets'"
        config["secrets"] = tuple(resolved(text, settings.environ, where) for text in secrets)
    if start.is_ours:
        addressed = with_addresses(scenario, settings.environ).config
        config |= {key: value for key in OPERATORS_ADDRESSES if (value := getattr(addressed, key)) is not None}
    else:
        config = {key: value for key, value in config.items() if key not in settings_of_the_host(scenario.config)}
    # The judge copies these ids into the submission.
    config["participant_ids"] = {agent.role: agent.agentbeats_id for agent in scenario.participants}
    config["site_resets"] = scenario.resets
    if not scenario.tasks:
        if options.level or options.task or options.where or options.exclude:
            raise ConfigError(
                "--level, --task, --where and --exclude choose among a scenario's own tasks",
                remedy=f"{options.scenario} names a task set that its judge has: use --limit, or list the tasks",
            )
        if options.limit is not None:
            config["num_instances"] = options.limit
    config |= options.with_environment(settings).chosen
    if config.get("attacks", "off") != "off" and (unseen := read_unseen(scenario.path)):
        config["unseen_attacks"] = unseen
    for each in plugins().values():
        config |= each.configured(start, config) if each.configured else {}
    return validated(CONFIG, config, "config, as the options and the environment set it")


def notes_for_another_judge(scenario: Scenario) -> tuple[str, ...]:
    """What a judge started elsewhere does not get."""
    unsent = tuple(
        f"Note: config.{name} is not sent: only the user who starts a judge may set it, and this one already runs."
        for name in settings_of_the_host(scenario.config)
    )
    return unsent + tuple(
        f"Note: site {site.name} is not {'restarted' if site.restart else 'reset'}: that needs a judge that is started"
        " here."
        for site in scenario.sites
        if site.restart or site.is_reset_elsewhere
    )


def check_judge(start: Start, config: RunConfig) -> None:
    """Raises `ConfigError` if the judge is to be started here and cannot work with these settings."""
    if (judge_cmd := start.scenario.green_agent.cmd) is None or start.options.serve_only:
        return
    # The judge's environment, because a key may be set only there.
    judge_settings = Settings.from_environ({**start.settings.environ, **start.members[-1].env})
    try:
        check_config(config, judge_settings)
    except ConfigError as error:
        raise _with_source(error, start) from None
    if [Path(word).name for word in shlex.split(judge_cmd)[:2]] == ["wabe", "serve"]:
        # Any other command may run the browser elsewhere, such as in a container.
        find_browser(config.browser_path, judge_settings, build=wanted_by(config))
        require_display(config, judge_settings.environ)


def _with_source(error: ConfigError, start: Start) -> ConfigError:
    """The error with the source of the mistake: the scenario file, or the option or variable that overrides it."""
    options, overriding = start.options, start.options.with_environment(start.settings).chosen
    for each in declared_options():
        if error.key == f"config.{each.name}" and each.name in overriding:
            key = each.flag if each.name in options.chosen else f"WABE_{each.option.variable.upper()}"
            return ConfigError(error.problem, key=key, remedy=error.remedy)
    return ConfigError(error.message, location=str(options.scenario), remedy=error.remedy)
