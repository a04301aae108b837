"""The only module that reads the environment; all others receive a `Settings`."""

import os
from collections.abc import Mapping
from pathlib import Path

from pydantic import AliasChoices, ConfigDict, Field, SecretStr

from shared.models import Record

# In a wheel, and in a source tree.
_BUNDLED_SCENARIOS = (Path(__file__).parent / "scenarios", Path(__file__).parents[2] / "scenarios")
# How variables with a provider's key are named.
KEY_SUFFIX = "_API_KEY"
# `fresh` of a scenario's participant, for its process.
FRESH_VARIABLE = "WABE_FRESH"


class Settings(Record):
    """The process's environment variables. API keys are secrets and are never printed."""

    model_config = ConfigDict(populate_by_name=True, extra="ignore")

    judge_model: str | None = Field(None, validation_alias="WABE_JUDGE_MODEL")
    judge_method: str | None = Field(None, validation_alias="WABE_JUDGE_METHOD")
    participant_model: str | None = Field(
        None, validation_alias=AliasChoices("WABE_PARTICIPANT_MODEL", "PARTICIPANT_MODEL")
    )
    browser_path: str | None = Field(None, validation_alias="WABE_BROWSER_PATH")
    mcp_server: str | None = Field(None, validation_alias="WABE_MCP_SERVER")
    replay_script: str | None = Field(None, validation_alias="WABE_REPLAY_SCRIPT")
    # The day of the run, for participants that it starts.
    today: str | None = Field(None, validation_alias="WABE_TODAY")
    # What a program that a participant starts remembers.
    fresh: str | None = Field(None, validation_alias=FRESH_VARIABLE)
    scenarios: str | None = Field(None, validation_alias="WABE_SCENARIOS")
    auth_token: SecretStr | None = Field(None, validation_alias="WABE_AUTH_TOKEN")
    output_dir: str | None = Field(None, validation_alias="WABE_OUTPUT_DIR")
    object_store: str | None = Field(None, validation_alias="WABE_STORE")
    # Formats that no installed package declares: `ending=module:attribute`, with commas.
    archive_formats: str = Field("", validation_alias="WABE_ARCHIVE_FORMATS")
    # Opens sealed task sets.
    seal_key: SecretStr | None = Field(None, validation_alias="WABE_SEAL_KEY")
    redis_url: SecretStr | None = Field(None, validation_alias="WABE_REDIS_URL")
    webarena_python: str | None = Field(None, validation_alias="WABE_WEBARENA_PYTHON")
    container_engine: str = Field("docker", validation_alias="WABE_ENGINE")
    home: str | None = Field(None, validation_alias="HOME")
    path: str = Field("", validation_alias="PATH")
    in_container: bool = False
    trust_config: bool = False
    record_trace: bool = False
    # Files of a run that a CI service keeps may be public.
    is_ci: bool = False
    # Set for the shards of a run whose sites were started once for all of them.
    sites_run: bool = False
    # Addresses of the agents that run already, as in containers: the judge's, then the participants' in their order.
    agents_run: tuple[str, ...] = ()
    environ: Mapping[str, str] = Field(default_factory=dict, repr=False)

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> "Settings":
        """Read `environ` (default: the process's). Empty variables count as unset."""
        source = dict(os.environ if environ is None else environ)
        # Upper case only: an environment variable with a field's name is not a setting.
        values: dict[str, object] = {name: value for name, value in source.items() if value and name.isupper()}
        if model := source.get("EVAL_MODEL"):
            # The variable of earlier versions, in which a bare model name meant Gemini.
            values.setdefault("WABE_JUDGE_MODEL", model if ":" in model or model == "offline" else f"gemini:{model}")
        # Our images set the first, Podman and systemd-nspawn the second.
        values["in_container"] = any(source.get(name) for name in ("WABE_IN_CONTAINER", "container"))
        # Only "1" counts: any other value must not make the judge trust a request's configuration.
        values["trust_config"] = source.get("WABE_TRUST_CONFIG") == "1"
        values["record_trace"] = source.get("WABE_RECORD_TRACE") == "1"
        values["is_ci"] = source.get("CI", "").lower() not in ("", "0", "false")
        values["sites_run"] = source.get("WABE_SITES_RUN") == "1"
        values["agents_run"] = tuple(source.get("WABE_AGENTS_RUN", "").split())
        return cls.model_validate({**values, "environ": source})

    def secret(self, variable: str) -> SecretStr | None:
        """The secret in a variable, such as a provider's key."""
        value = self.environ.get(variable)
        return SecretStr(value) if value else None

    @property
    def secrets(self) -> tuple[SecretStr, ...]:
        """The values that must not appear in a log: our own, and the keys of providers, known or not."""
        own = (value for _, value in self if isinstance(value, SecretStr))
        keys = (self.secret(name) for name in self.environ if name.endswith(KEY_SUFFIX))
        return (*own, *filter(None, keys))

    @property
    def cache_folder(self) -> Path | None:
        """The user's cache folder; `None` without a home folder."""
        cache = self.environ.get("XDG_CACHE_HOME") or (f"{self.home}/.cache" if self.home else None)
        return Path(cache) if cache else None

    @property
    def scenarios_folder(self) -> Path:
        """The folder of the bundled scenarios: `WABE_SCENARIOS` (as in images), or the one beside the code."""
        if self.scenarios:
            return Path(self.scenarios)
        return next((folder for folder in _BUNDLED_SCENARIOS if folder.is_dir()), _BUNDLED_SCENARIOS[-1])

    @property
    def bundled_scenarios(self) -> dict[str, Path]:
        """The scenario file of each bundled task set, by the set's name."""
        return {path.parent.name: path for path in sorted(self.scenarios_folder.glob("*/scenario.toml"))}
