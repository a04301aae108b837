"""The credentials of a scenario's participants, with the variables that they name."""

from collections.abc import Mapping
from urllib.parse import urlsplit

from judge.records.credentials import check_value
from judge.records.sites import origin_of
from judge.scenario.models import ParticipantEntry, Scenario, resolved
from shared.errors import ConfigError
from shared.fields import Invalid, printable
from shared.hosts import is_loopback
from shared.text import excerpt


def resolved_headers(agent: ParticipantEntry, environ: Mapping[str, str], source: object) -> dict[str, str]:
    """The `headers` of a participant with each `${NAME}` replaced from `environ`.

    Raises `ConfigError` that names the file (`source`), the participant and the header, but shows no value.
    """
    headers = {}
    for name, text in agent.headers.items():
        where = f"{source}: {excerpt(agent.role)}, key 'headers': {excerpt(name)}"
        headers[name] = resolved(text, environ, where)
        try:
            check_value(name, headers[name])
        except Invalid as error:
            raise ConfigError(f"{where}: {error.problem}", remedy=error.remedy) from None
    return headers


def headers_at(scenario: Scenario, url: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The credentials of the scenario's participant at this address. Raises `ConfigError` if none is there."""
    for agent in scenario.participants:
        if agent.endpoint is not None and origin_of(agent.endpoint) == origin_of(url):
            return resolved_headers(agent, environ, scenario.path)
    known = ", ".join(agent.endpoint for agent in scenario.participants if agent.endpoint) or "none has an endpoint"
    raise ConfigError(f"{scenario.path}: no participant at {printable(url)}", remedy=f"known: {known}")


def clear_text_note(url: str, headers: Mapping[str, str]) -> str | None:
    """A warning if credentials leave this machine without encryption; it shows none."""
    parts = urlsplit(url)
    if not headers or parts.scheme != "http" or is_loopback(parts.hostname or ""):
        return None
    return f"the participant's headers are sent to {excerpt(parts.netloc)} over plain HTTP: use HTTPS"
