"""An assessment request before it is sent: records until the last moment, then one JSON text."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

from judge.config import RunConfig
from judge.records.access import StorageState
from judge.records.tasks import Task
from judge.scenario.files import contents_of
from judge.scenario.models import Launch, Scenario
from judge.scenario.pairs import planned
from shared.errors import ConfigError
from shared.fields import printable


@dataclass(frozen=True)
class RequestDraft:
    """The request that `agentbeats-run` sends.

    `tasks` are those to be played, `excluded` those that the scenario excludes. `launch` is for a judge that the runner
    itself started; `headers` are the participants' credentials by role. `sealed` is the text of a sealed file: then
    only the ids of the tasks are sent beside it.
    """

    participants: Mapping[str, str]
    config: RunConfig
    tasks: tuple[Task, ...] = ()
    excluded: tuple[Task, ...] = ()
    launch: Launch | None = None
    headers: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)
    sealed: str | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        *,
        tasks: tuple[Task, ...] | None = None,
        config: RunConfig | None = None,
        launch: Launch | None = None,
        headers: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    ) -> Self:
        """The request for `scenario`, with other tasks or settings where given.

        Raises `ConfigError` when a participant has no endpoint.
        """
        endpoints: dict[str, str] = {}
        for agent in scenario.participants:
            if agent.endpoint is None:
                raise ConfigError(
                    f"{scenario.path}: participant {printable(agent.role)} has no endpoint",
                    remedy='add endpoint = "http://127.0.0.1:PORT"',
                )
            endpoints[agent.role] = agent.endpoint
        settings = scenario.config if config is None else config
        ids = {agent.role: agent.agentbeats_id for agent in scenario.participants if agent.agentbeats_id}
        if ids and "participant_ids" not in settings.model_fields_set:
            settings = settings.model_copy(update={"participant_ids": ids})
        selection = scenario.tasks if tasks is None else tasks
        sealed = scenario.sealed.text if scenario.sealed else None
        return cls(endpoints, settings, selection, scenario.excluded if selection else (), launch, headers, sealed)

    @property
    def tasks_to_play(self) -> tuple[Task, ...]:
        """The tasks that the judge plays: clean, under their attacks and variants, or both."""
        return planned(self.tasks, self.config)

    def with_restarts(self, restarts: Mapping[str, str]) -> Self:
        """With the addresses at which the runner restarts sites, by website."""
        if not restarts:
            return self
        return replace(self, config=self.config.model_copy(update={"site_restarts": dict(restarts)}))

    def with_tasks(self, tasks: Sequence[Task]) -> Self:
        """With the same tasks, whose storage states may be newer."""
        return replace(self, tasks=tuple(tasks))

    def text(self) -> str:
        """The request as JSON. Only settings that are set are sent, so that other versions of the judge accept it."""
        config: dict[str, Any] = self.config.model_dump(mode="json", exclude_unset=True)
        body: dict[str, Any] = {"participants": dict(self.participants), "config": config}
        if self.launch is not None:
            body["launch"] = self.launch.model_dump(mode="json", exclude_defaults=True)
        states: dict[str, dict[str, Any]] = {}
        if self.tasks:
            # The judge plays none of those excluded, and names them in its results.
            all_tasks = (*self.tasks, *self.excluded)
            if self.sealed is None:
                config["tasks"] = _tables(all_tasks, states)
                if contents := contents_of(all_tasks):
                    body["files"] = {name: base64.b64encode(data).decode() for name, data in contents.items()}
            else:
                config |= {"sealed": self.sealed, "tasks": [task.task_id for task in all_tasks]}
        if states:
            body["storage_states"] = states
        if self.headers:
            body["participant_headers"] = {role: dict(values) for role, values in self.headers.items()}
        return json.dumps(body, ensure_ascii=False, allow_nan=False)


def _tables(tasks: Sequence[Task], states: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """The tasks as JSON, with the login data that dumps omit. Storage states go to `states` by name, to be shared."""
    names: dict[str, str] = {}
    tables = []
    for task in tasks:
        # As declared: the judge writes the dates out, by the `today` of the request's settings.
        table = task.declared(exclude_defaults=True)
        if task.files:
            table["files"] = [each.name for each in task.files]
        if isinstance(task.storage_state, StorageState):
            content = task.storage_state.to_json()
            table["storage_state"] = names.setdefault(json.dumps(content), f"state-{len(names) + 1}")
            states[table["storage_state"]] = content
        if task.excluded:
            table["excluded"] = task.excluded
        table |= {key: str(day) for key in ("valid_from", "valid_until") if (day := getattr(task, key))}
        if task.http_credentials:
            table["http_credentials"] = [
                each.model_dump(mode="json", exclude_defaults=True) for each in task.http_credentials
            ]
        tables.append(table)
    return tables
