"""What the documents of the Amber compiler say about manifests, and how the platform's runner fills in a scenario.

The compiler itself cannot run in tests. `problems` names what is wrong with a manifest of version 0.3.0 or 0.4.0.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema

_PREFIX = "AMBER_CONFIG_"
_NAME = {"type": "string", "pattern": r"^[^.]+$"}
_KEY = r"^(?!.*__)[a-z][a-z0-9_]*$"
_KINDS = ("mcp", "llm", "http", "docker", "a2a", "storage")
_CAPABILITY = {
    "type": "object",
    "properties": {
        "kind": {"enum": list(_KINDS)},
        "profile": {"type": "string"},
        "optional": {"type": "boolean"},
        "multiple": {"type": "boolean"},
        "endpoint": {"type": "string"},
    },
    "required": ["kind"],
    "additionalProperties": False,
}
_ENV = {
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "when": {"type": "string", "pattern": r"^(config|slots)\.[a-z0-9_.]+$"},
                "value": {"type": "string"},
            },
            "required": ["when", "value"],
            "additionalProperties": False,
        },
    ]
}
_MANIFEST: dict[str, Any] = {
    "type": "object",
    "properties": {
        "manifest_version": {"enum": ["0.3.0", "0.4.0"]},
        "program": {
            "type": "object",
            "properties": {
                "image": {"type": "string"},
                "entrypoint": {"type": "array", "items": {"type": "string"}, "minItems": 1},
                "env": {"type": "object", "additionalProperties": _ENV},
                "network": {
                    "type": "object",
                    "properties": {
                        "endpoints": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "properties": {
                                    "name": {"type": "string"},
                                    "port": {"type": "integer", "minimum": 1, "maximum": 65535},
                                    "protocol": {"enum": ["http", "https", "tcp"]},
                                },
                                "required": ["name", "port"],
                                "additionalProperties": False,
                            },
                        }
                    },
                    "additionalProperties": False,
                },
            },
            "required": ["image", "entrypoint"],
            "additionalProperties": False,
        },
        "components": {
            "type": "object",
            "propertyNames": _NAME,
            "additionalProperties": {
                "type": "object",
                "properties": {"manifest": {"type": "string", "format": "uri"}, "config": {"type": "object"}},
                "required": ["manifest"],
                "additionalProperties": False,
            },
        },
        "config_schema": {"type": "object"},
        "slots": {"type": "object", "propertyNames": _NAME, "additionalProperties": _CAPABILITY},
        "provides": {
            "type": "object",
            "propertyNames": _NAME,
            "additionalProperties": {**_CAPABILITY, "required": ["kind", "endpoint"]},
        },
        "bindings": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "to": {"type": "string", "pattern": r"^#[^.]+\.[^.]+$"},
                    "from": {"type": "string", "pattern": r"^(#[^.]+|slots|provides)\.[^.]+$"},
                    "weak": {"type": "boolean"},
                },
                "required": ["to", "from"],
                "additionalProperties": False,
            },
        },
        "exports": {
            "type": "object",
            "propertyNames": _NAME,
            "additionalProperties": {"type": "string", "pattern": r"^(#[^.]+|slots|provides)\.[^.]+$"},
        },
        "metadata": {},
    },
    "required": ["manifest_version"],
    "additionalProperties": False,
}
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
