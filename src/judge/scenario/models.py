"""What a scenario file and an assessment request hold, once they are read and checked."""

import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from judge.config import RunConfig
from shared.errors import ConfigError
from shared.models import Record, Task
from shared.text import excerpt

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_REFERENCE = re.compile(r"(\$\{[^}]*\}?)")


class AgentEntry(Record):
    """An agent of a scenario. Without `cmd` it is already running; without `endpoint` a platform places it."""

    role: str
    endpoint: str | None = None
    cmd: str | None = None
    agentbeats_id: str = ""
    env: dict[str, str] = Field(default_factory=dict, repr=False)
    image: str | None = None

    def resolved_env(self, environ: Mapping[str, str], source: object) -> dict[str, str]:
        """`env` with each `${NAME}` replaced from `environ`. An empty variable counts as unset.

        Raises `ConfigError` that names the variable, the key and the file (`source`); no error shows a value.
        """

        def resolve(where: str, reference: str) -> str:
            name = _VARIABLE.fullmatch(reference)
            if name is None:
                raise ConfigError(
                    f"{where} refers to a variable in another form than ${{NAME}}", remedy="write ${NAME}"
                )
            value = environ.get(name[1])
            if not value:
                raise ConfigError(
                    f"{where} needs the environment variable {name[1]}, which is not set",
                    remedy=f"export {name[1]}=…, or remove the entry",
                )
            return value

        resolved = {}
        for key, text in self.env.items():
            where = f"{source}: {excerpt(self.role)}, key 'env': {excerpt(key)}"
            # The text between two references, and each reference, in turn.
            pieces = _REFERENCE.split(text)
            resolved[key] = "".join(resolve(where, piece) if place % 2 else piece for place, piece in enumerate(pieces))
        return resolved


class SiteEntry(Record):
    """A local website that is started before the agents (a demo shop, a manual)."""

    name: str
    endpoint: str
    cmd: str | None = None


class Scenario(Record):
    """A scenario file. `source_checksum` is the SHA-256 of its bytes, in hexadecimal."""

    green_agent: AgentEntry
    participants: tuple[AgentEntry, ...]
    sites: tuple[SiteEntry, ...] = ()
    config: RunConfig = RunConfig()
    tasks: tuple[Task, ...] = ()
    path: Path
    source_checksum: str


class LaunchedProcess(Record):
    """What was started under a name, without a secret: `cmd` and `env` as SHA-256 of the text in the scenario file.

    There a secret is a `${NAME}`, so a key may change between two runs, but not which key is used.
    """

    cmd_sha256: str | None = Field(default=None, max_length=64)
    env_sha256: str | None = Field(default=None, max_length=64)
    image: str | None = Field(default=None, max_length=500)
    model: str | None = Field(default=None, max_length=500)


class Launch(Record):
    """What `agentbeats-run` tells a judge of its own, for the run's record: the scenario file, and who plays."""

    scenario_name: str = Field(max_length=300)
    scenario_path: str = Field(max_length=5000)
    scenario_sha256: str = Field(max_length=64)
    participants: dict[str, LaunchedProcess] = Field(default_factory=dict, max_length=100)
    sites: dict[str, LaunchedProcess] = Field(default_factory=dict, max_length=100)


class AssessmentRequest(Record):
    """What the judge is asked to do. `participants` maps role to URL; `warnings` are one-line sentences."""

    participants: dict[str, str]
    config: RunConfig
    tasks: tuple[Task, ...]
    launch: Launch | None = None
    warnings: tuple[str, ...] = ()
