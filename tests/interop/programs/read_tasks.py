"""Loads task folders with Harbor's own loader and linter: prints one JSON object for each folder that is named."""

import json
import sys
import typing
from pathlib import Path

import typing_extensions

if sys.version_info < (3, 12):
    # Harbor is written for Python 3.12, of which this part needs two names.
    typing.override = typing_extensions.override
    typing.TypedDict = typing_extensions.TypedDict

from harbor.lint.models import COMPOSE_RULES, DEFAULT_RULES, LintRule
from harbor.lint.task import lint_task
from harbor.models.task.task import Task
from harbor.models.task.verifier_mode import resolve_verifier_environment_definition

# The others need Docker's command.
RULES = (set(DEFAULT_RULES) - COMPOSE_RULES) | {LintRule.INVALID_TASK_CONFIG, LintRule.INVALID_TASK_FILES}


def described(folder: Path) -> dict[str, object]:
    """What Harbor makes of a task's folder."""
    task = Task(folder)
    config = task.config
    definition = resolve_verifier_environment_definition(config, task.paths)
    return {
        "name": task.name,
        "instruction": task.instruction,
        "mcp": [server.url for server in config.environment.mcp_servers],
        "collected_in": [hook.service for hook in config.verifier.collect],
        "verifier": definition and [definition.directory.name, definition.bundled_tests],
        "findings": [f"{each.rule}: {each.message}" for each in findings_of(folder)],
    }


def findings_of(folder: Path) -> list[typing.Any]:
    """The linter's findings, without those that need Docker's command."""
    import harbor.lint.task as linter

    linter.lint_compose = lambda *_, **__: []
    return lint_task(folder, selected_rules=RULES)


for name in sys.argv[1:]:
    try:
        print(json.dumps(described(Path(name))))
    except (ValueError, OSError) as error:
        print(json.dumps({"error": str(error)[:500]}))
