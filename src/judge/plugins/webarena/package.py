"""WebArena-Verified's evaluator, in a separate process because it needs other versions of our libraries.

`WABE_WEBARENA_PYTHON` is the Python of that environment, in which `program.py` runs. One process evaluates
any number of attempts, one after the other. It gets no credentials and no environment variables, and needs no network.
"""

import asyncio
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from shared.errors import ConfigError, WabeError
from shared.fields import first_mistake
from shared.files import read_file, write_json
from shared.strict_json import parse_json
from shared.text import bounded_line

_LOCK = Path(__file__).with_name("requirements-webarena.lock")
INSTALL = (
    f"python3 -m venv .webarena && .webarena/bin/pip install --require-hashes -r {shlex.quote(str(_LOCK))}"
    " && export WABE_WEBARENA_PYTHON=$PWD/.webarena/bin/python"
)
_PROGRAM = Path(__file__).with_name("program.py")
# Loading the package and its 812 tasks takes about a second, evaluating an attempt some milliseconds.
_START_TIMEOUT_S = 120.0
# A participant's text may be a regular expression that never finishes.
_TIMEOUT_S = 30.0
_PACKAGING_TIMEOUT_S = 300.0
# An answer that every evaluator can parse; its result is not used.
_NEUTRAL_ANSWER = '{"task_type": "RETRIEVE", "status": "UNKNOWN_ERROR"}'
_MAX_ANSWER_BYTES = 32_000_000
_KEPT_OF_ERRORS = 500
M = TypeVar("M", bound=BaseModel)


class EvaluatorError(WabeError):
    """The package's process failed, hung, or gave an unexpected answer. The attempt stays unscored."""


class Foreign(BaseModel):
    """A part of the package's files and answers. Keys not declared are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


class PackageInfo(Foreign):
    """The package's version, checksums of its evaluators and its data, and the JSON schema of an answer."""

    version: str = Field(max_length=50)
    evaluator_checksum: str = Field(max_length=64)
    data_checksum: str = Field(max_length=64)
    answer_schema: dict[str, Any]


class PackageTask(Foreign):
    """A task of the package. `start_urls` begin with a site's placeholder, such as `__SHOPPING__`.

    `fields` are the names of the parameters, form fields and headers that its evaluators read.
    """

    task_id: int
    sites: tuple[str, ...] = Field(min_length=1)
    start_urls: tuple[str, ...] = Field(min_length=1)
    intent: str
    fields: tuple[str, ...]
    intent_template_id: int | None = None


class PackageTasks(Foreign):
    """The tasks of a subset, `None` if it does not exist; `subsets` are the existing names."""

    tasks: tuple[PackageTask, ...] | None
    subsets: tuple[str, ...]


class PackageAssertion(Foreign):
    """One assertion of an evaluator that failed."""

    assertion_name: str
    status: str
    assertion_msgs: tuple[str, ...] | None = None
    error_msg: str | None = None


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


JsonText = Annotated[str, BeforeValidator(_as_text)]


class EvaluatorResult(Foreign):
    """The findings of one evaluator, as JSON text: `actual` as recorded, `actual_normalized` as compared."""

    evaluator_name: str
    status: Literal["success", "partial_match", "failure", "error"]
    score: float | None = None
    actual: JsonText = ""
    actual_normalized: JsonText = ""
    expected: JsonText = ""
    assertions: tuple[PackageAssertion, ...] | None = None
    error_msg: str | None = None
    should_not_exist: bool | None = None


class PackageResult(Foreign):
    """The package's result for one attempt (its `eval_result.json`)."""

    task_id: int
    intent_template_id: int | None = None
    sites: tuple[str, ...]
    task_revision: int
    status: Literal["success", "partial_match", "failure", "error"]
    score: float
    evaluators_results: tuple[EvaluatorResult, ...]
    error_msg: str | None = None
    webarena_verified_version: str
    webarena_verified_evaluator_checksum: str
    webarena_verified_data_checksum: str


class Evaluation(Foreign):
    """The package's result for one attempt; `None` if it cannot parse the participant's answer or requests.

    `refusal` says why a success does not count, or what cannot be parsed; both are the participant's fault.
    """

    result: PackageResult | None
    refusal: str | None = None

    @property
    def error(self) -> str | None:
        """The package's error, if it ended in one."""
        if self.result is None or self.result.status != "error":
            return None
        errors = [self.result.error_msg, *(each.error_msg for each in self.result.evaluators_results)]
        return "; ".join(filter(None, errors)) or "without a message"


def required_python(python: str | None) -> Path:
    """The Python of the package's environment. Raises `ConfigError` with the command that creates it."""
    if python is None:
        raise ConfigError("WABE_WEBARENA_PYTHON is not set: WebArena-Verified has no environment", remedy=INSTALL)
    # Not resolved: Python detects a virtual environment by the link in its bin folder.
    path = Path(python).absolute()
    if not path.is_file() or not os.access(path, os.X_OK):
        raise ConfigError(f"WABE_WEBARENA_PYTHON: {path} is not a program", remedy=INSTALL)
    return path


def evaluator_trace(har: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded trace in the form that the package expects: HTTP requests only, with frames marked.

    The package takes the last navigation as the participant's destination, and would count a frame's document as one
    unless its `Sec-Fetch-User` header says that no user requested it. An unanswered request has the status -1, as
    Playwright's recorder writes it, because eight tasks expect that.
    """
    entries = [_marked(entry) for entry in har["log"]["entries"] if entry["request"]["url"].startswith("http")]
    return {"log": {**har["log"], "entries": entries}}


def _holds_pattern(entry: Mapping[str, Any]) -> bool:
    """Whether the request may contain text that the package would treat as a regular expression."""
    request = entry["request"]
    body_text = (request.get("postData") or {}).get("text") or ""
    return re.search(r"\^.*\$", unquote(request["url"]) + unquote(body_text), re.DOTALL) is not None


def _marked(entry: dict[str, Any]) -> dict[str, Any]:
    response = entry.get("response") or {}
    if response.get("status", 0) <= 0:
        entry = {**entry, "response": {"redirectURL": "", **response, "status": -1}}
    if not entry.get("_frame"):
        return entry
    request = entry["request"]
    headers = [header for header in request.get("headers", ()) if header["name"].lower() != "sec-fetch-user"]
    return {**entry, "request": {**request, "headers": [*headers, {"name": "Sec-Fetch-User", "value": "?0"}]}}


class _PackageTasks(Foreign):
    task_ids: tuple[int, ...]


class SubmissionSummary(Foreign):
    """The `summary.json` that the package's submission command writes."""

    packaged_tasks: _PackageTasks


def packaged_tasks(python: str | None, folder: Path) -> frozenset[int]:
    """The numbers of the tasks in a folder that the package's submission command accepts.

    Raises `ConfigError` without its environment, `EvaluatorError` if the command fails.
    """
    program = required_python(python)
    with tempfile.TemporaryDirectory(prefix="wabe-webarena-") as place:
        command = [str(program), "-I", "-X", "utf8", "-m", "webarena_verified", "create-submission-pkg", "--no-tar"]
        command += ["--run-output-dir", str(folder.absolute()), "--output", place, "--name", "checked"]
        try:
            done = subprocess.run(
                command, cwd=place, env={}, capture_output=True, timeout=_PACKAGING_TIMEOUT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise EvaluatorError(f"create-submission-pkg did not end within {_PACKAGING_TIMEOUT_S:g} s") from None
        except OSError as error:
            raise EvaluatorError(f"{python} cannot be started: {error.strerror or error}") from None
        summary = Path(place) / "checked" / "summary.json"
        if not summary.is_file():
            raise EvaluatorError(f"create-submission-pkg: {_last_line(done.stderr, otherwise='no summary.json')}")
        return frozenset(parsed_answer(read_file(summary), SubmissionSummary).packaged_tasks.task_ids)


class WebArenaPackage:
    """The package, loaded with the addresses of the sites. Use `open`, and `aclose` at the end."""

    def __init__(self, python: Path, environments: Mapping[str, Any]) -> None:
        self._python = python
        self._environments = environments
        self._process: asyncio.subprocess.Process | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="wabe-webarena-")
        self._one_at_a_time = asyncio.Lock()
        self.about: PackageInfo

    @classmethod
    async def open(cls, python: str | None, environments: Mapping[str, Any]) -> Self:
        """Start the process. Raises `ConfigError` if there is no usable environment."""
        package = cls(required_python(python), environments)
        try:
            package.about = await package._start()
        except EvaluatorError as error:
            await package.aclose()
            raise ConfigError(f"WABE_WEBARENA_PYTHON: {error.message}", remedy=INSTALL) from None
        return package

    async def tasks(self, subset: str | None) -> PackageTasks:
        """The tasks, all of them without a `subset`."""
        async with self._one_at_a_time:
            return await self._ask({"op": "tasks", "subset": subset}, PackageTasks)

    async def evaluate(
        self, task_id: int, *, instruction: str | None, answer: str | None, har: Mapping[str, Any]
    ) -> Evaluation:
        """The result for one attempt, from the participant's unchanged answer and the trace of its requests.

        If the package fails, it is called again without the participant's text. If that succeeds, the failure is the
        participant's fault; otherwise raises `EvaluatorError`.
        """
        trace = evaluator_trace(har)
        try:
            evaluation = await self._evaluate(task_id, instruction, answer, trace)
            problem = evaluation.error
            if problem is None:
                return evaluation
        except EvaluatorError as error:
            problem = error.message
        without = {
            "log": {**trace["log"], "entries": [each for each in trace["log"]["entries"] if not _holds_pattern(each)]}
        }
        for what, rest in (("the answer", trace), ("an address or a form field", without)):
            with contextlib.suppress(EvaluatorError):
                if (await self._evaluate(task_id, instruction, _NEUTRAL_ANSWER, rest)).error is None:
                    return Evaluation(result=None, refusal=f"{what} cannot be read: {problem}")
        raise EvaluatorError(problem)

    async def _evaluate(
        self, task_id: int, instruction: str | None, answer: str | None, trace: Mapping[str, Any]
    ) -> Evaluation:
        path = Path(self._folder.name) / "network.har"
        request = {"op": "evaluate", "task_id": task_id, "instruction": instruction, "answer": answer, "har": str(path)}
        async with self._one_at_a_time:
            await asyncio.to_thread(write_json, path, trace)
            return await self._ask(request, Evaluation)

    async def aclose(self) -> None:
        """End the process and its child processes."""
        await self._end()
        self._folder.cleanup()

    async def _start(self) -> PackageInfo:
        folder = Path(self._folder.name)
        try:
            with (folder / "log").open("wb") as log:
                # Isolated mode: neither the working folder nor environment variables can add modules.
                self._process = await asyncio.create_subprocess_exec(
                    self._python,
                    "-I",
                    "-X",
                    "utf8",
                    _PROGRAM,
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=log,
                    cwd=folder,
                    env={},
                    limit=_MAX_ANSWER_BYTES,
                    # A separate process group, so that `_end` also ends child processes.
                    start_new_session=True,
                )
        except OSError as error:
            raise EvaluatorError(f"{self._python} cannot be started: {error.strerror or error}") from None
        return await self._exchange({"environments": self._environments}, PackageInfo, _START_TIMEOUT_S)

    async def _ask(self, request: Mapping[str, Any], answer: type[M]) -> M:
        if self._process is None:
            await self._start()
        return await self._exchange(request, answer, _TIMEOUT_S)

    async def _exchange(self, request: Mapping[str, Any], model: type[M], timeout_s: float) -> M:
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            async with asyncio.timeout(timeout_s):
                process.stdin.write(json.dumps(request).encode() + b"\n")
                await process.stdin.drain()
                line = await process.stdout.readline()
        except (TimeoutError, ValueError) as error:
            await self._end()
            problem = f"no answer within {timeout_s:g} s" if isinstance(error, TimeoutError) else str(error)
            raise EvaluatorError(f"WebArena-Verified: {bounded_line(problem, _KEPT_OF_ERRORS)}") from None
        except OSError:
            # The process ended before it read the request.
            line = b""
        except asyncio.CancelledError:
            # A late answer would be read as the next request's.
            await self._end()
            raise
        if not line.endswith(b"\n"):
            await self._end()
            log = (Path(self._folder.name) / "log").read_bytes()
            raise EvaluatorError(f"WebArena-Verified ended: {_last_line(log, otherwise='no error output')}")
        return parsed_answer(line, model)

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL) if sys.platform != "win32" else process.kill()
            await process.wait()


def _last_line(errors: bytes, *, otherwise: str) -> str:
    lines = errors[-4000:].decode("utf-8", "replace").strip().splitlines() or [otherwise]
    return bounded_line(lines[-1], _KEPT_OF_ERRORS)


def parsed_answer(line: bytes, model: type[M]) -> M:
    """Parse a line of the package's process. Raises `EvaluatorError` if it reports an error or is not as expected."""
    try:
        value = parse_json(line.decode())
        if isinstance(value, dict) and isinstance(value.get("error"), str):
            raise EvaluatorError(f"WebArena-Verified: {bounded_line(value['error'], _KEPT_OF_ERRORS)}")
        return model.model_validate(value)
    except ValidationError as error:
        problem = first_mistake(error)
    except ValueError as error:
        problem = str(error)
    raise EvaluatorError(f"WebArena-Verified: unexpected answer: {bounded_line(problem, _KEPT_OF_ERRORS)}")
