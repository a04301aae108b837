"""Judges with WebArena-Verified's evaluator: deterministic, no model."""

import functools
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Any

from judge.judges.base import Evaluator, Judge, judge_id
from judge.judges.code import found_plugins, installed_code
from judge.judges.methods import METHODS
from judge.plugins.webarena.package import EvaluatorError, EvaluatorResult, PackageResult, PackageTask, WebArenaPackage
from judge.plugins.webarena.tasks import SiteAddresses, read_addresses, task_number, unknown_text
from judge.records.verdicts import NO_PROMPTS, OFFLINE, JudgeInfo, Verdict
from judge.trajectory.network import read_har
from judge.trajectory.record import Trajectory
from shared.errors import TrajectoryError
from shared.files import read_json
from shared.settings import Settings
from shared.text import counted

METHOD = "webarena_verified"
ANSWER_EVALUATOR = "AgentResponseEvaluator"


class WebArenaJudge(Judge):
    """Passes the final answer and the network trace of an imported task to the package, and records its result."""

    def __init__(self, package: WebArenaPackage, addresses: SiteAddresses, tasks: Iterable[PackageTask]) -> None:
        self._package = package
        self._sites = {task.task_id: "-".join(sorted(task.sites)) for task in tasks}
        about, code = package.about, installed_code()
        versions = (about.version, about.evaluator_checksum, about.data_checksum)
        self.id = judge_id(METHOD, *versions, code["code_checksum"], addresses.without_credentials())
        self.info = JudgeInfo(
            method=METHOD,
            model=OFFLINE,
            prompt_set=NO_PROMPTS,
            prompt_version=about.version,
            # There are no prompts: code decides, as for checks.
            prompt_checksum=code["code_checksum"],
            # The threshold for screenshot scores is required but not used by this method.
            threshold=1,
            note=f"webarena-verified {about.version}, evaluators {about.evaluator_checksum[:12]}, "
            f"data {about.data_checksum[:12]}",
            plugins=found_plugins(METHODS.plugin(METHOD)),
            **code,
        )

    @classmethod
    async def open(cls, settings: Settings, addresses: SiteAddresses) -> "WebArenaJudge":
        """Start the package in its own process, which `aclose` ends. Raises `ConfigError` if it is not installed."""
        package = await WebArenaPackage.open(settings.webarena_python, addresses.without_credentials())
        try:
            return cls(package, addresses, (await package.tasks(None)).tasks or ())
        except BaseException:
            await package.aclose()
            raise

    def site_of(self, task_id: str) -> str:
        """The site of a task, as the benchmark groups its results; several are joined: `gitlab-reddit`."""
        number = task_number(task_id) or task_number(f"webarena-{task_id}")
        return "other" if number is None else self._sites.get(number, "other")

    async def judge(self, trajectory: Trajectory) -> Verdict:
        """The package's verdict; unscored if the package or the recording failed."""
        number = task_number(trajectory.task.task_id)
        if number is None:
            return self._unscored("not a task that was imported from WebArena-Verified")
        try:
            har, dropped = read_trace(trajectory)
            text = trajectory.task.task
            instruction = None if trajectory.is_foreign and text == unknown_text(number) else text
            evaluation = await self._package.evaluate(
                number, instruction=instruction, answer=trajectory.final_answer, har=har
            )
        except (EvaluatorError, TrajectoryError) as error:
            return self._unscored(error.message)
        if evaluation.result is None:
            return self._verdict("failure", evaluation.refusal or "", None)
        if dropped and any(each.evaluator_name != ANSWER_EVALUATOR for each in evaluation.result.evaluators_results):
            # Otherwise a participant could hide a request, or become unscored, by sending more than are recorded.
            return self._verdict("failure", f"{counted(dropped, 'later request')} went unrecorded", evaluation.result)
        if evaluation.result.status == "success" and evaluation.refusal is None:
            return self._verdict("success", "all evaluators passed", evaluation.result)
        return self._verdict("failure", evaluation.refusal or failed_because(evaluation.result), evaluation.result)

    async def aclose(self) -> None:
        """End the package's process."""
        await self._package.aclose()

    def _unscored(self, reason: str) -> Verdict:
        return Verdict(outcome="unscored", reason=reason, judge=self.info, cost_usd=0.0)

    def _verdict(self, outcome: Any, reason: str, result: PackageResult | None) -> Verdict:
        return Verdict(
            outcome=outcome,
            reason=reason,
            judge=self.info,
            key_points=tuple(_key_point(each) for each in result.evaluators_results) if result else (),
            evidence={METHOD: result.model_dump(mode="json")} if result else {},
            cost_usd=0.0,
        )


def read_trace(trajectory: Trajectory) -> tuple[Mapping[str, Any], int]:
    """The recorded trace as JSON, and the number of requests dropped because it was full.

    Raises `TrajectoryError` if there is none.
    """
    if trajectory.network is None:
        why = trajectory.network_missing
        raise TrajectoryError(f"no network trace was recorded{f': {why}' if why else ''}")
    trace = read_har(trajectory.network)
    if not trace.entries:
        raise TrajectoryError("the network trace holds no request")
    har: dict[str, Any] = read_json(trajectory.network)
    return har, trace.dropped


def failed_because(result: PackageResult) -> str:
    """The failed assertions, in the package's words."""
    failed = [each for each in result.evaluators_results if each.status != "success"]
    reason = "; ".join(f"{each.evaluator_name}: {_messages(each)}" for each in failed)
    if result.status == "partial_match":
        # A failure here, which the verdict would not tell apart from others.
        return f"partial match: {reason}"
    return reason or f"status {result.status}"


def _messages(result: EvaluatorResult) -> str:
    messages = [text for each in result.assertions or () for text in each.assertion_msgs or (each.error_msg or "",)]
    return " ".join(filter(None, messages)) or result.status


def _key_point(result: EvaluatorResult) -> str:
    """What an evaluator expected."""
    name = "answer" if result.evaluator_name == ANSWER_EVALUATOR else "request"
    return f"{name}{' that must not be made' if result.should_not_exist else ''}: {result.expected}"


def open_with(settings: Settings, config: Path | None) -> Callable[[], Coroutine[Any, Any, Judge]]:
    """What opens the judge for the sites that a file names. Raises `ConfigError` if that cannot be read."""
    return functools.partial(WebArenaJudge.open, settings, read_addresses(config))


EVALUATOR = Evaluator(open=open_with, takes_config=True)
