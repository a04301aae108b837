"""The files that images, platform and workflows are made of: read with real parsers, checked against the code."""

import asyncio
import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
import yaml
from typer.testing import CliRunner

from helpers.json5 import json5
from helpers.participants import serving_participant
from judge.browser.fonts import FONT_PACKAGES
from judge.commands.app import app as wabe
from judge.config import DEFAULT_JUDGE_MODEL, RunConfig
from judge.scenario.request import parse_request
from judge.scenario.toml import bundled_tasks, load_scenario
from participants.base import ParticipantOptions
from participants.command import load
from shared.llm.opening import provider
from shared.llm.providers import provider_names
from shared.participants import list_participants
from shared.settings import Settings

# What the documents of the Amber compiler say about manifests, and how the platform's runner fills in a scenario.
_PREFIX = "AMBER_CONFIG_"
_NAME = {"type": "string", "pattern": r"^[^.]+$"}
_KEY = r"^(?!.*__)[a-z][a-z0-9_]*$"
_KINDS = ("mcp", "llm", "http", "docker", "a2a", "storage")


def _object(required: str = "", **properties: Any) -> dict[str, Any]:
    """The schema of an object with these properties, no others, and those in `required`."""
    return {"type": "object", "properties": properties, "required": required.split(), "additionalProperties": False}


def _named(values: Any) -> dict[str, Any]:
    return {"type": "object", "propertyNames": _NAME, "additionalProperties": values}


def _text(pattern: str = "") -> dict[str, Any]:
    return {"type": "string", "pattern": pattern}


_SOURCE = _text(r"^(#[^.]+|slots|provides)\.[^.]+$")
_CAPABILITY = {
    "kind": {"enum": list(_KINDS)},
    "profile": _text(),
    "optional": {"type": "boolean"},
    "multiple": {"type": "boolean"},
    "endpoint": _text(),
}
_PORT = {"type": "integer", "minimum": 1, "maximum": 65535}
_ENDPOINT = _object("name port", name=_text(), port=_PORT, protocol={"enum": ["http", "https", "tcp"]})
_ENV = _object("when value", when=_text(r"^(config|slots)\.[a-z0-9_.]+$"), value=_text())
_PROGRAM = _object(
    "image entrypoint",
    image=_text(),
    entrypoint={"type": "array", "items": _text(), "minItems": 1},
    env={"type": "object", "additionalProperties": {"anyOf": [_text(), _ENV]}},
    network=_object(endpoints={"type": "array", "items": _ENDPOINT}),
)
_BINDING = _object("to from", **{"to": _text(r"^#[^.]+\.[^.]+$"), "from": _SOURCE, "weak": {"type": "boolean"}})
_MANIFEST = _object(
    "manifest_version",
    manifest_version={"enum": ["0.3.0", "0.4.0"]},
    program=_PROGRAM,
    components=_named(_object("manifest", manifest=_text() | {"format": "uri"}, config={"type": "object"})),
    config_schema={"type": "object"},
    slots=_named(_object("kind", **_CAPABILITY)),
    provides=_named(_object("kind endpoint", **_CAPABILITY)),
    bindings={"type": "array", "items": _BINDING},
    exports=_named(_SOURCE),
    metadata={},
)
# The profile of JSON Schema that `config_schema` may use.
_SCHEMA_KEYS = frozenset(
    "type properties required additionalProperties secret default description enum minimum maximum items".split()
)


def problems(manifest: Mapping[str, Any]) -> list[str]:
    """What the compiler would refuse, as its documents describe it."""
    results = [error.message for error in jsonschema.Draft202012Validator(_MANIFEST).iter_errors(manifest)]
    schema = manifest.get("config_schema")
    if schema is not None:
        results += _schema_problems(schema, "config_schema")
        if schema.get("type") != "object":
            results.append("config_schema: the root is not an object")
    declared = {place: set(manifest.get(place, {})) for place in ("slots", "provides", "components")}
    results += [f"{name}: in slots and provides" for name in declared["slots"] & declared["provides"]]
    targets = [*manifest.get("exports", {}).values()]
    targets += [end for each in manifest.get("bindings", ()) for end in (each["to"], each["from"])]
    for target in targets:
        place, _, name = target.partition(".")
        known = place[1:] in declared["components"] if place.startswith("#") else name in declared[place]
        if not known:
            results.append(f"{target}: not declared")
    return results


def _schema_problems(schema: Mapping[str, Any], where: str) -> Iterator[str]:
    yield from (f"{where}: {key} is not supported" for key in schema if key not in _SCHEMA_KEYS)
    properties = schema.get("properties", {})
    yield from (f"{where}: {key} is not declared" for key in schema.get("required", ()) if key not in properties)
    for key, inner in properties.items():
        if not re.fullmatch(_KEY, key):
            yield f"{where}: {key} is not a name of a property"
        if "default" in inner and list(jsonschema.Draft202012Validator(inner).iter_errors(inner["default"])):
            yield f"{where}.{key}: the default has another type"
        yield from _schema_problems(inner, f"{where}.{key}")


def runner_environment(green: Mapping[str, str], **participants: Mapping[str, str]) -> dict[str, str]:
    """The variables that the runner of Quick Submit sets for the submitter's values, by component and key."""
    return {
        f"{_PREFIX}{name.upper()}_{key.upper()}": value
        for name, values in {"green": green, **participants}.items()
        for key, value in values.items()
    }


def root_config(scenario: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    """The configuration that the compiler reads from the environment: a double underscore is a step into an object.

    Raises `ValueError` for a variable that no leaf of the schema has, and for a configuration that does not fit.
    """
    schema, config = scenario["config_schema"], {}
    for variable, value in environ.items():
        path = variable.removeprefix(_PREFIX).lower().split("__")
        inner = schema
        for step in path:
            if step not in inner.get("properties", {}):
                raise ValueError(f"{variable} does not correspond to a leaf of the schema")
            inner = inner["properties"][step]
        # An empty variable counts as unset. Paths into objects are not needed by our scenario.
        if value:
            [key] = path
            config[key] = value
    defaults = {key: inner["default"] for key, inner in schema["properties"].items() if "default" in inner}
    config = defaults | config
    try:
        jsonschema.validate(config, schema)
    except jsonschema.ValidationError as error:
        raise ValueError(error.message) from None
    return config


def program_environment(
    scenario: Mapping[str, Any], component: str, manifest: Mapping[str, Any], config: Mapping[str, Any]
) -> dict[str, str]:
    """The environment of a component's program of a scenario with this root configuration; slots stay as they are."""

    def filled(text: str, values: Mapping[str, Any]) -> str:
        return re.sub(r"\$\{config\.(\w+)\}", lambda match: str(values[match[1]]), text)

    own = {key: filled(value, config) for key, value in scenario["components"][component]["config"].items()}
    jsonschema.validate(own, manifest["config_schema"])
    results = {}
    for variable, value in manifest["program"].get("env", {}).items():
        if isinstance(value, str):
            results[variable] = filled(value, own)
        elif value["when"].removeprefix("config.") in own:
            results[variable] = filled(value["value"], own)
    return results


ROOT = Path(__file__).resolve().parent.parent.parent
DOCKERFILES = ("Dockerfile", "Dockerfile.purple")
MANIFESTS = sorted(path.name for path in ROOT.glob("amber-manifest*.json5"))
WORKFLOWS = sorted([*ROOT.glob(".github/workflows/*.yml"), *ROOT.glob("leaderboard/.github/workflows/*.yml")])
both = pytest.mark.parametrize("name", DOCKERFILES)


def instructions(name: str) -> list[tuple[str, str]]:
    """`(instruction, arguments)` of a Dockerfile, with continued lines joined and comments left out."""
    lines = [line for line in (ROOT / name).read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n", " ", "\n".join(lines))
    words = [line.split(None, 1) for line in joined.splitlines() if line.strip()]
    return [(head.upper(), " ".join(rest.split())) for head, rest in words]


def final_stage(name: str) -> list[tuple[str, str]]:
    result = instructions(name)
    start = max(index for index, (instruction, _) in enumerate(result) if instruction == "FROM")
    return result[start:]


def argument_of(name: str, instruction: str) -> str:
    return [arguments for head, arguments in final_stage(name) if head == instruction][-1]


def copied_from_context(name: str) -> Iterator[str]:
    for instruction, arguments in instructions(name):
        if instruction == "COPY" and "--from=" not in arguments:
            yield from arguments.split()[:-1]


@both
def test_the_image_runs_as_a_numbered_user_without_privileges(name: str) -> None:
    result = final_stage(name)
    user = argument_of(name, "USER")
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)
    last_user = max(index for index, (instruction, _) in enumerate(result) if instruction == "USER")
    assert "RUN" not in [instruction for instruction, _ in result[last_user:]]


@pytest.mark.parametrize("name", ["Dockerfile", "scripts/setup.sh"])
def test_fonts_for_every_script_that_doctor_measures_are_installed(name: str) -> None:
    assert set(FONT_PACKAGES) <= set((ROOT / name).read_text().replace(";", " ").split())


@both
def test_no_key_is_part_of_the_image(name: str) -> None:
    set_names = [
        word.partition("=")[0]
        for instruction, arguments in instructions(name)
        if instruction in ("ENV", "ARG")
        for word in shlex.split(arguments)
    ]
    assert [word for word in set_names if re.search("KEY|TOKEN|SECRET|PASSWORD", word)] == []


@both
def test_signals_and_orphans_are_handled_by_an_init(name: str) -> None:
    assert json.loads(argument_of(name, "ENTRYPOINT"))[:2] == ["tini", "--"]


@both
def test_the_health_check_is_in_the_image_with_what_it_needs(name: str) -> None:
    command = json.loads(argument_of(name, "HEALTHCHECK").partition("CMD ")[2])
    copied = " ".join(arguments for instruction, arguments in final_stage(name) if instruction == "COPY")
    assert command == ["/app/healthcheck.sh"]
    assert "docker/healthcheck.sh" in copied
    assert "curl" in " ".join(arguments for instruction, arguments in final_stage(name) if instruction == "RUN")


@both
def test_every_base_is_debians_slim_python_of_one_release(name: str) -> None:
    bases = [arguments.split()[0] for instruction, arguments in instructions(name) if instruction == "FROM"]
    stages = {arguments.split()[2] for instruction, arguments in instructions(name) if " AS " in f" {arguments} "}
    assert {base.partition("@sha256:")[0] for base in set(bases) - stages} == {"python:3.11-slim-bookworm"}


@both
def test_dependencies_are_checked_by_hash_and_stand_before_the_code(name: str) -> None:
    result = instructions(name)
    install = next(i for i, (head, rest) in enumerate(result) if head == "RUN" and "--require-hashes" in rest)
    code = next(i for i, (head, rest) in enumerate(result) if head == "COPY" and rest.startswith("src "))
    assert install < code


@both
def test_what_is_copied_exists_and_reaches_the_build(name: str) -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    allowed = [rule[1:] for rule in rules if rule.startswith("!")]
    for source in copied_from_context(name):
        assert list(ROOT.glob(source)), source
        assert any(
            source == rule or source.startswith(f"{rule}/") or fnmatch.fnmatch(rule, source) for rule in allowed
        ), source


@both
def test_the_task_sets_are_found_where_the_image_has_them(name: str) -> None:
    copied = [arguments.split() for head, arguments in final_stage(name) if head == "COPY"]
    [target] = [target for *sources, target in copied if sources == ["scenarios"]]
    variables = dict(word.split("=", 1) for word in shlex.split(argument_of(name, "ENV")))
    assert Settings.from_environ(variables).scenarios_folder == Path(target)


def test_the_participants_lock_is_a_part_of_the_judges_lock() -> None:
    def pins(name: str) -> set[str]:
        return {line.split()[0] for line in (ROOT / name).read_text().splitlines() if re.match(r"[a-z0-9].*==", line)}

    assert pins("docker/requirements-purple.lock") < pins("requirements.lock")
    assert len(pins("docker/requirements-purple.lock")) > 20


@pytest.mark.skipif(shutil.which("curl") is None, reason="the image's health check is a script around curl")
@pytest.mark.parametrize(
    ("arguments", "healthy"),
    [
        (["tini", "--", "wabe", "serve", "--host", "0.0.0.0", "--port", "{port}"], True),
        (["tini", "--", "wabe", "serve", "--port={port}"], True),
        (["docker-init", "--", "x", "--port", "1", "--port", "{port}", "--card-url", "http://a.test"], True),
        (["tini", "--", "wabe", "serve", "--host", "127.0.0.1", "--port", "1"], False),
    ],
)
async def test_the_health_check_asks_at_the_port_that_was_given(
    tmp_path: Path, arguments: list[str], healthy: bool
) -> None:
    script = ROOT / "docker" / "healthcheck.sh"
    async with serving_participant(load("random")(ParticipantOptions())) as url:
        line = "\0".join(word.format(port=httpx.URL(url).port) for word in arguments) + "\0"
        (tmp_path / "cmdline").write_text(line)
        process = await asyncio.create_subprocess_exec(
            str(script), str(tmp_path / "cmdline"), stderr=asyncio.subprocess.DEVNULL
        )
        assert (await process.wait() == 0) is healthy


def interpolations(value: Any) -> set[str]:
    return set(re.findall(r"\$\{([^}]+)\}", json.dumps(value)))


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifest_names_only_what_it_declares(name: str) -> None:
    manifest = json5(ROOT / name)
    declared = manifest.get("config_schema", {}).get("properties", {})
    used = interpolations(manifest["program"])
    assert {path for path in used if path.startswith("config.")} == {f"config.{key}" for key in declared}
    assert {path for path in used if path.startswith("slots.")} == {f"slots.{key}" for key in manifest.get("slots", {})}
    endpoints = {endpoint["name"] for endpoint in manifest["program"]["network"]["endpoints"]}
    assert {provide["endpoint"] for provide in manifest["provides"].values()} == endpoints
    assert {f"provides.{key}" for key in manifest["provides"]} == set(manifest["exports"].values())
    assert all(re.fullmatch(r"(?!.*__)[a-z][a-z0-9_]*", key) for key in declared)
    assert all(schema.get("secret") for key, schema in declared.items() if key.endswith("key"))


def is_read(variable: str) -> bool:
    """Whether one of our settings or a model provider reads the variable."""
    known = [provider(name) for name in provider_names()]
    ours = [Settings.from_environ(each).model_dump(exclude={"environ"}) for each in ({variable: "x"}, {})]
    return ours[0] != ours[1] or any(variable in (*each.key_variables, each.url_variable) for each in known)


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifests_variables_are_read_by_the_settings(name: str) -> None:
    for variable in json5(ROOT / name)["program"].get("env", {}):
        assert variable == "AMBER_HINT_PROXY" or is_read(variable), variable


def test_the_example_environment_names_what_the_settings_read_and_sets_nothing() -> None:
    lines = [line for line in (ROOT / ".env.example").read_text().splitlines() if line and not line.startswith("#")]
    for variable, _, value in (line.partition("=") for line in lines):
        assert value == ""
        assert is_read(variable), variable


@pytest.mark.parametrize("name", MANIFESTS)
def test_a_manifests_entry_point_is_that_of_its_image(name: str) -> None:
    manifest = json5(ROOT / name)
    program = manifest["program"]
    dockerfile = "Dockerfile" if name == "amber-manifest.json5" else "Dockerfile.purple"
    started = json.loads(argument_of(dockerfile, "ENTRYPOINT")) + json.loads(argument_of(dockerfile, "CMD"))
    assert program["entrypoint"] == started
    assert program["network"]["endpoints"][0]["port"] == int(started[-1])


def test_each_participants_manifest_is_of_a_participant() -> None:
    known = set(list_participants())
    named = {json5(ROOT / name)["program"]["image"].rpartition("/")[2] for name in MANIFESTS}
    assert "wabe:latest" in named
    assert {image.removeprefix("wabe-purple-").removesuffix(":latest") for image in named - {"wabe:latest"}} <= known


def test_the_judge_accepts_the_request_that_its_manifest_asks_for() -> None:
    metadata = json5(ROOT / "amber-manifest.json5")["metadata"]
    participants = dict.fromkeys(metadata["participant_roles"], "http://127.0.0.1:9019")
    text = json.dumps({"participants": participants, "config": metadata["assessment_config"]})
    request = parse_request(text, lambda name: bundled_tasks(name, ROOT / "scenarios"))
    assert request.tasks
    assert request.warnings == ()


@both
def test_the_images_default_arguments_are_options_of_the_command(name: str) -> None:
    command = "serve" if name == "Dockerfile" else "participant"
    output = CliRunner().invoke(wabe, [command, "--help"]).output
    assert all(word in output for word in (*json.loads(argument_of(name, "CMD"))[::2], "--card-url"))


COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())


def test_compose_builds_every_image_it_runs() -> None:
    built = {service["image"] for service in COMPOSE["services"].values() if "build" in service}
    assert {service["image"] for service in COMPOSE["services"].values()} == built


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_a_composed_service_has_no_more_rights_than_it_needs(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "/tmp" in service["tmpfs"]
    assert "privileged" not in service


def test_only_the_service_that_shares_the_output_folder_is_root_and_it_has_no_network() -> None:
    services = COMPOSE["services"]
    assert [name for name, service in services.items() if "cap_add" in service or service["user"] == "0:0"] == [
        "output"
    ]
    assert services["output"]["network_mode"] == "none"
    assert services["output"]["cap_add"] == ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID"]
    assert services["judge"]["depends_on"]["output"]["condition"] == "service_healthy"


@pytest.mark.parametrize("path", [*WORKFLOWS, ROOT / "action.yml"], ids=lambda path: f"{path.parts[-4]}/{path.name}")
def test_every_action_is_pinned_by_the_digest_of_a_commit_with_its_version_beside_it(path: Path) -> None:
    # Jobs call whole workflows: those of AgentBeats, whose branch it is to say what they do, and our own.
    pinned = re.compile(r"[\w.-]+/[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+")
    used = re.findall(r"^ *(?:- )?uses: (.+)$", path.read_text(), re.MULTILINE)
    # `./` is this repository's own action, at the commit that the job has checked out.
    others = [action for action in used if action != "./" and ".github/workflows/" not in action]
    assert [action for action in others if not pinned.fullmatch(action)] == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: f"{path.parts[-4]}/{path.name}")
def test_a_workflow_is_sound(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text())
    # YAML 1.1 reads the key `on` as true.
    assert workflow.get("on", workflow.get(True))
    for job in workflow["jobs"].values():
        assert "permissions" in workflow or "permissions" in job
        for step in job.get("steps", ()):
            assert ("run" in step) != ("uses" in step)
            if "uses" in step:
                continue
            assert subprocess.run(["bash", "-n"], input=step["run"], text=True, check=False).returncode == 0
            assert "${{" not in step["run"], "values come by env, so that no input is run as code"
            for script in re.findall(r"(?<![\w/.])(?:scripts/[\w.-]+|\.ci/run)", step["run"]):
                assert (ROOT / script).is_file(), script


@pytest.mark.skipif(shutil.which("jq") is None, reason="the workflow's machines have jq")
def test_the_leaderboards_workflow_hands_over_the_secrets_that_the_scenario_names(tmp_path: Path) -> None:
    workflow = yaml.safe_load((ROOT / "leaderboard/.github/workflows/run-scenario.yml").read_text())
    [step] = [step for step in workflow["jobs"]["run"]["steps"] if step.get("id") == "run"]
    script = tmp_path / ".wabe" / "scripts" / "run-docker.py"
    script.parent.mkdir(parents=True)
    script.write_text("import os, sys; open(sys.argv[-1], 'w').write(repr({k: os.environ.get(k) for k in 'ABC'}))")
    (tmp_path / "scenario.toml").write_text('env = { K = "${A}", P = "${PATH}", Q = "x ${C}" }')
    environ = {
        "PATH": os.environ["PATH"],
        "GITHUB_OUTPUT": str(tmp_path / "said"),
        "GITHUB_REPOSITORY_OWNER": "me",
        "SECRETS": json.dumps({"A": "1 2", "B": "3"}),
    }
    done = subprocess.run(
        ["bash", "-e", "-c", step["run"]], cwd=tmp_path, env=environ, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    [result] = (tmp_path / "results").iterdir()
    assert result.read_text() == "{'A': '1 2', 'B': None, 'C': None}"


def test_the_leaderboards_scenario_is_valid_and_asks_for_a_bundled_task_set() -> None:
    scenario = load_scenario(ROOT / "leaderboard" / "scenario.toml")
    assert scenario.config.scenario is not None
    assert bundled_tasks(scenario.config.scenario, ROOT / "scenarios")
    assert [agent.role for agent in scenario.participants] == ["white_agent"]


def test_both_scenarios_of_the_leaderboard_ask_for_the_same() -> None:
    toml, amber = load_scenario(ROOT / "leaderboard" / "scenario.toml"), json5(ROOT / "leaderboard" / "scenario.json5")
    request = amber["components"]["gateway"]["config"]["assessment_config"]
    assert {key: getattr(toml.config, key) for key in request} == request
    assert set(amber["components"]["gateway"]["config"]["participant_roles"].values()) == {"green", "white_agent"}


SUBMITTED = ROOT / "leaderboard" / "scenario.json5"


@pytest.mark.parametrize("version", ["0.3.0", "0.4.0"])
@pytest.mark.parametrize("path", [*(ROOT / name for name in MANIFESTS), SUBMITTED], ids=lambda path: path.name)
def test_a_manifest_is_valid_for_each_version_of_the_compiler_in_use(path: Path, version: str) -> None:
    assert problems(json5(path) | {"manifest_version": version}) == []


@pytest.mark.parametrize("name", MANIFESTS)
def test_an_optional_key_has_a_default_for_the_submission_form(name: str) -> None:
    schema = json5(ROOT / name).get("config_schema", {"properties": {}, "required": []})
    without = {key for key, inner in schema["properties"].items() if "default" not in inner}
    assert without == set(schema["required"])


def test_the_judges_defaults_are_those_of_its_settings() -> None:
    properties = json5(ROOT / "amber-manifest.json5")["config_schema"]["properties"]
    config = RunConfig()
    for key in ("judge_model", "judge_method"):
        assert properties[key]["default"] == getattr(config, key)
        assert json5(SUBMITTED)["config_schema"]["properties"][f"green_{key}"]["default"] == getattr(config, key)


def test_what_the_platforms_runner_sets_reaches_the_programs_as_their_settings() -> None:
    scenario, manifest = json5(SUBMITTED), json5(ROOT / "amber-manifest.json5")
    values = {key: f"value of {key}" for key in manifest["config_schema"]["properties"]}
    config = root_config(scenario, runner_environment(values, white_agent={"google_api_key": "theirs", "model": "m"}))
    judge = program_environment(scenario, "green", manifest, config)
    assert {value for value in judge.values() if value.startswith("value of")} == set(values.values())
    settings = Settings.from_environ(judge)
    assert (settings.judge_model, settings.judge_method) == ("value of judge_model", "value of judge_method")
    assert settings.seal_key is not None
    assert settings.seal_key.get_secret_value() == "value of holdout_key"
    theirs = program_environment(scenario, "white_agent", json5(ROOT / "amber-manifest.gemini.json5"), config)
    assert theirs == {"GOOGLE_API_KEY": "theirs", "WABE_PARTICIPANT_MODEL": "m"}


def test_without_optional_values_the_judge_has_its_defaults_and_no_other_key() -> None:
    scenario, manifest = json5(SUBMITTED), json5(ROOT / "amber-manifest.json5")
    config = root_config(scenario, runner_environment({"google_api_key": "k"}, white_agent={"google_api_key": "t"}))
    judge = Settings.from_environ(program_environment(scenario, "green", manifest, config))
    assert (judge.judge_model, judge.judge_method) == (DEFAULT_JUDGE_MODEL, RunConfig().judge_method)
    assert [name for name, value in judge.environ.items() if name.endswith("_API_KEY") and value] == ["GOOGLE_API_KEY"]
    with pytest.raises(ValueError, match="white_agent_google_api_key"):
        root_config(scenario, runner_environment({"google_api_key": "k"}))
