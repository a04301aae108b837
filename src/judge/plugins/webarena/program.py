"""Runs in the environment of the `webarena-verified` package; `judge.plugins.webarena.package` starts it.

Standard input and output carry one JSON object per line. The first request is `{"environments": {"shopping": {"urls":
[…], "active_url_idx": 0}}}`, answered with the package's version and checksums; every later one has an `op`. It imports
none of the judge's modules, because that environment has other versions of our libraries.
"""

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from webarena_verified.api import WebArenaVerified
from webarena_verified.api.internal.subsets_manager import SubsetsManager
from webarena_verified.core.evaluation.evaluators import AgentResponseEvaluator
from webarena_verified.core.utils import is_regexp
from webarena_verified.core.utils.checksum import compute_data_file_checksum, compute_evaluator_checksum
from webarena_verified.types.agent_response import FinalAgentResponse
from webarena_verified.types.config import WebArenaVerifiedConfig
from webarena_verified.types.eval import WEBARENA_VERIFIED_VERSION
from webarena_verified.types.task import WebArenaVerifiedTask

_MAX_TEXT_CHARS = 20_000


def serve() -> None:
    """Answer requests until standard input ends."""
    # The package prints to standard output, which must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    package: WebArenaVerified | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if package is None:
                package = WebArenaVerified(config=WebArenaVerifiedConfig(environments=request["environments"]))
                answer = _about(package)
            else:
                answer = _OPERATIONS[request.pop("op")](package, **request)
        # The judge decides what an error means; it must not stop the evaluation of later attempts.
        except Exception as error:  # noqa: BLE001
            answer = {"error": f"{type(error).__name__}: {error}"[:2000]}
        answers.write(json.dumps(answer, default=str) + "\n")
        answers.flush()


def _about(package: WebArenaVerified) -> dict[str, Any]:
    return {
        "version": WEBARENA_VERIFIED_VERSION,
        "evaluator_checksum": compute_evaluator_checksum(),
        "data_checksum": compute_data_file_checksum(package.config.test_data_file),
        "answer_schema": FinalAgentResponse.model_json_schema(),
    }


def tasks(package: WebArenaVerified, subset: str | None) -> dict[str, Any]:
    """The data needed to import every task, or a subset; `null` instead of tasks for an unknown subset."""
    subsets = SubsetsManager(package.config)
    names = [path.stem.removeprefix("webarena-verified-") for path in subsets.subsets_dir.glob("*.json")]
    if subset is not None and subset not in names:
        return {"tasks": None, "subsets": sorted(names)}
    task_ids = None
    if subset is not None:
        path = subsets.subsets_dir / f"webarena-verified-{subset}.json"
        task_ids = set(json.loads(path.read_text())["task_ids"])
    rows = [_row(task) for task in package.get_tasks() if task_ids is None or task.task_id in task_ids]
    return {"tasks": rows, "subsets": sorted(names)}


def _row(task: WebArenaVerifiedTask) -> dict[str, Any]:
    return {
        "task_id": task.task_id,
        "sites": [site.value for site in task.sites],
        "start_urls": list(task.start_urls),
        "intent": task.intent,
        "fields": sorted(_fields(task)),
        "intent_template_id": task.intent_template_id,
    }


def _fields(task: WebArenaVerifiedTask) -> set[str]:
    """The names of headers, cookies, parameters and fields whose values the evaluators read."""
    names: set[str] = set()
    for config in task.network_event_evaluator_cfgs:
        expected = config.expected
        for part in (expected.headers, expected.query_params, expected.response_cookies):
            names.update(part or ())
        for part in (expected.post_data, expected.response_content):
            # `$.note.note` is a JSON path: its last key is the field's name.
            names.update(key.strip().rpartition(".")[2] if key.startswith("$") else key.strip() for key in part or ())
    return names


def evaluate(
    package: WebArenaVerified, task_id: int, instruction: str | None, answer: str | None, har: str
) -> dict[str, Any]:
    """The package's result for one attempt. `instruction` is not known of recordings of other programs.

    `refusal` says why a success must not count: a value of the attempt is a pattern or a list of guesses, which the
    package's comparison would accept in place of the expected value.
    """
    task = package.get_task(task_id)
    # Another version of the package may use the number for another task.
    if instruction is not None and task.intent not in instruction:
        raise ValueError(f"the instruction is not that of task {task_id} in version {WEBARENA_VERIFIED_VERSION}")
    missing = [site.value for site in task.sites if site not in (package.config.environments or {})]
    if missing:
        # The package would guess the address.
        raise ValueError(f"the configuration has no address of {', '.join(missing)}")
    evaluation = package.evaluate_task(task_id=task_id, agent_response=answer, network_trace=Path(har)).model_dump(
        mode="json"
    )
    refusal = _refusal(task, answer, evaluation) if evaluation["status"] == "success" else None
    for each in evaluation["evaluators_results"]:
        for key in ("actual", "actual_normalized", "expected"):
            # As text, because a participant's answer may contain values that other JSON readers refuse.
            value = each[key] if isinstance(each[key], str) else json.dumps(each[key], default=str)
            each[key] = value[:_MAX_TEXT_CHARS]
    return {"result": evaluation, "refusal": refusal}


def _refusal(task: WebArenaVerifiedTask, answer: str | None, result: Mapping[str, Any]) -> str | None:
    """Why a success does not count. The package matches in both directions, so an answer may be a pattern itself."""
    for each, config in zip(result["evaluators_results"], task.eval, strict=True):
        if each["evaluator_name"] == "AgentResponseEvaluator":
            normalised = each["actual_normalized"]
            schema = config.results_schema
            data = normalised.get("retrieved_data") if isinstance(normalised, Mapping) else None
            raw = _raw_data(answer)
            if any(is_regexp(text.strip()) for text in _texts([normalised, raw])):
                return "the answer holds a regular expression instead of a value"
            if data is not None and _holds_guesses(raw, schema):
                return "the answer holds a list of alternatives where one value is asked for"
        else:
            urls = [event.get("url", "") for event in each["actual"] or () if isinstance(event, Mapping)]
            values = [value for url in urls for _, value in parse_qsl(urlsplit(url).query)]
            if any(is_regexp(text.strip()) for text in _texts([each["actual_normalized"], values])):
                return "a request holds a regular expression instead of a value"
    return None


def _raw_data(answer: str | None) -> Any:
    """The answer's `retrieved_data` as the package reads it."""
    value = AgentResponseEvaluator()._get_actual_agent_response_dict(answer)
    return value.get("retrieved_data") if isinstance(value, Mapping) else None


def _holds_guesses(value: Any, schema: Mapping[str, Any]) -> bool:
    """Whether there is a list where the schema does not allow one."""
    if schema.get("format") == "coordinates" and isinstance(value, list) and len(value) == 2:
        # A pair of numbers is allowed: latitude and longitude.
        return not all(isinstance(number, int | float) for number in value)
    if isinstance(value, list):
        items = schema.get("items", {}) if schema.get("type") == "array" else None
        return items is None or any(_holds_guesses(item, items) for item in value)
    if isinstance(value, Mapping):
        properties = schema.get("properties", {})
        return any(_holds_guesses(item, properties.get(key, {})) for key, item in value.items())
    return False


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


_OPERATIONS: Mapping[str, Callable[..., dict[str, Any]]] = {"tasks": tasks, "evaluate": evaluate}

if __name__ == "__main__":
    serve()
