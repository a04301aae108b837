"""`wabe sites`: records websites into archives, checks archives, and combines them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from judge.browser.by_hand import browse_by_hand
from judge.commands import Command, Where, plain_app
from judge.commands.run import scenario_file
from judge.network.archives import LOG_IN
from judge.network.interception import Interceptor
from judge.network.policy import NetworkPolicy
from judge.plugins.frozen.checking import checked, is_sound, lines_of
from judge.plugins.frozen.credentials import credentials_in
from judge.plugins.frozen.exchanges import SiteRecording
from judge.plugins.frozen.matching.requests import is_recorded_write
from judge.plugins.frozen.merging import merged
from judge.plugins.frozen.playing import AttemptResult, Playing, participant_of, reference_tasks, script_player
from judge.plugins.frozen.recording import RecordingInterceptor
from judge.plugins.frozen.wacz import read_wacz, write_wacz
from judge.records.events import Event, StepDone, TaskDone, TaskStarted
from judge.records.sites import Origin, origin_of
from judge.records.tasks import Task
from judge.runner.boundary import EXIT_DONE, EXIT_LOST, run_interruptible
from judge.runner.launch import child_environ, launched
from judge.runner.rehearsal import started_sites
from judge.scenario.frozen import opened
from judge.scenario.models import Scenario
from judge.scenario.toml import load_scenario, select
from shared.errors import ConfigError
from shared.settings import Settings
from shared.text import counted, one_line

_MAX_CREDENTIALS = 20
_ENDING = ".wacz"

sites = plain_app(help="Frozen sites: record websites, check and combine the archives.", no_args_is_help=True)

ScenarioOption = Annotated[str, typer.Argument(metavar="SCENARIO", help="A scenario file or a bundled task set.")]
TaskOption = Annotated[list[str] | None, typer.Option("--task", metavar="ID", help="Only this task; repeatable.")]
OutputOption = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The archive to write (.wacz).")]


@sites.command()
def record(
    scenario: ScenarioOption,
    output: OutputOption,
    task: TaskOption = None,
    where: Where = None,
    participant: Annotated[
        str | None, typer.Option(metavar="ROLE", help="Play with this participant instead of the reference scripts.")
    ] = None,
    by_hand: Annotated[
        bool, typer.Option("--by-hand", help="Open a browser and record what you do until you close it.")
    ] = False,
    is_once: Annotated[
        bool, typer.Option("--once", help="Play each script once; answers to requests that vary are uncertain then.")
    ] = False,
) -> None:
    """Record the sites of a scenario while its tasks are played. Each play of a task is one walk in the archive.

    Plays the tasks' reference scripts, a participant of the scenario, or a person. Scripts are played twice, because
    what differs between two plays is what pages make up, such as the time in an address.
    """
    _require_ending(output)
    if by_hand and participant:
        raise ConfigError("--by-hand and --participant exclude each other", remedy="leave one out")
    settings = Settings.from_environ()
    live_scenario = _live(load_scenario(scenario_file(scenario, settings.bundled_scenarios)))
    selection = select(live_scenario.tasks, ids=task or (), where=where or (), excluded=live_scenario.excluded)
    fresh = frozenset(origin_of(site.endpoint) for site in live_scenario.sites if site.cmd or site.reset)
    recorded = _WalkRecorder(live_scenario.config.secrets, is_reference=participant is None, fresh=fresh)
    if by_hand:
        code = run_interruptible(_record_by_hand(live_scenario, selection, settings, recorded))
    else:
        code = run_interruptible(
            _record_played(live_scenario, selection, settings, recorded, participant, is_once=is_once)
        )
    recording = recorded.recording()
    if recorded.aborted and recorded.is_lost:
        typer.echo(f"No attempt was played to its end, so no archive was written: {recorded.aborted[0]}", err=True)
        raise typer.Exit(EXIT_LOST)
    if not recording.exchanges:
        raise ConfigError("nothing was recorded, so no archive was written", remedy="see the messages above")
    _tell_archive(output, recording, write_wacz(output, recording))
    raise typer.Exit(code)


@sites.command()
def check(
    archive: Annotated[Path, typer.Argument(metavar="ARCHIVE", help="The archive.")],
    scenario: Annotated[
        str | None, typer.Option(metavar="SCENARIO", help="Replay the reference scripts of this scenario's tasks.")
    ] = None,
    task: TaskOption = None,
) -> None:
    """Check an archive before it is used or shared: replay reference walks, and list what looks like a credential.

    The result is stored in the archive, so that runs exclude tasks whose own walk it cannot answer.
    Exit code 1 if a walk has a decisive miss, or fails although it passed when it was recorded.
    """
    if task and scenario is None:
        raise ConfigError("--task needs --scenario", remedy="name the scenario, or leave --task out")
    settings = Settings.from_environ()
    wacz = read_wacz(archive)
    code, digest = EXIT_DONE, wacz.digest
    if scenario is not None:
        path = scenario_file(scenario, settings.bundled_scenarios)
        results = _replayed(load_scenario(path), archive, task or (), settings)
        for line in lines_of(results, wacz.recording, f"wabe sites record {scenario}"):
            typer.echo(line)
        result = checked(results, path.name, wacz.checked)
        digest = write_wacz(archive, wacz.recording, checked=result, merged_from=wacz.merged_from)
        code = EXIT_DONE if is_sound(results, wacz.recording) else EXIT_LOST
    _tell_archive(archive, wacz.recording, digest)
    credentials = credentials_in(wacz.recording.exchanges)
    for each in credentials[:_MAX_CREDENTIALS]:
        typer.echo(f"looks like a credential: {each.what} in {each.where} of {each.record}, {each.url}: {each.begins}")
    if len(credentials) > _MAX_CREDENTIALS:
        typer.echo(f"and {len(credentials) - _MAX_CREDENTIALS} more that look like credentials")
    if not credentials:
        typer.echo("Nothing in it looks like a credential.")
    raise typer.Exit(code)


@sites.command()
def merge(
    archives: Annotated[list[Path], typer.Argument(metavar="ARCHIVE…", help="Two or more archives.")],
    output: OutputOption,
) -> None:
    """Combine archives into one with all their walks. Check it afterwards."""
    _require_ending(output)
    if len(archives) < 2:
        raise ConfigError("only one archive, nothing to merge", remedy="name two or more")
    wacz_files = [read_wacz(path) for path in archives]
    recording = merged([each.recording for each in wacz_files])
    digest = write_wacz(output, recording, merged_from=[each.digest for each in wacz_files])
    _tell_archive(output, recording, digest)


@dataclass
class _WalkRecorder:
    """The walks of a recording. If a task is retried, its last attempt counts."""

    secrets: Sequence[str]
    is_reference: bool
    # The sites that each play finds in the same state.
    fresh: frozenset[Origin | None] = frozenset()
    play: int = 1
    results: dict[tuple[str, int], AttemptResult] = field(default_factory=dict)
    _walks: dict[str, RecordingInterceptor] = field(default_factory=dict)
    _learnt: list[str] = field(default_factory=list)

    def attempt(self, task: Task) -> RecordingInterceptor:
        secrets = (*self.secrets, *task.secrets, *self._learnt)
        is_reference = self.play == 1 and self.is_reference and task.reference is not None
        return self._begin(task.task_id, secrets, task_id=task.task_id, is_reference=is_reference)

    def log_in_at(self, website: str, secrets: Sequence[str]) -> Interceptor:
        """Record a log-in; its password must not be stored anywhere."""
        self._learnt += secrets
        return self._begin(f"{LOG_IN} {website}", (*self.secrets, *secrets))

    def clock_at(self, website: str) -> None:
        """Pages have this machine's clock."""

    def by_hand(self, task_id: str | None) -> RecordingInterceptor:
        return self._begin(f"by hand {datetime.now(UTC):%Y-%m-%d %H:%M:%S}", self.secrets, task_id=task_id)

    def _begin(
        self, name: str, secrets: Sequence[str], *, task_id: str | None = None, is_reference: bool = False
    ) -> RecordingInterceptor:
        own = name if self.play == 1 else f"{name}, play {self.play}"
        repeats = name if self.play > 1 and name in self._walks else None
        interceptor = RecordingInterceptor(own, secrets, task_id=task_id, is_reference=is_reference, repeats=repeats)
        self._walks[own] = interceptor
        return interceptor

    def done(self, results: Iterable[AttemptResult]) -> None:
        """Note how the attempts of this play ended."""
        self.results |= {(each.task.task_id, self.play): each for each in results}

    @property
    def aborted(self) -> list[str]:
        """The aborted attempts of the first play, each with its cause."""
        firsts = (each for (_, play), each in self.results.items() if play == 1)
        return [f"{each.task.task_id}: {each.why}" for each in firsts if each.is_aborted]

    @property
    def is_lost(self) -> bool:
        """Whether every attempt was aborted."""
        return bool(self.results) and all(each.is_aborted for each in self.results.values())

    @property
    def unlike(self) -> list[str]:
        """The tasks whose second play took other actions than the first, ended otherwise, or found another state."""
        return [task_id for (task_id, play), each in self.results.items() if play > 1 and not self._is_repeated(each)]

    def _is_repeated(self, again: AttemptResult) -> bool:
        first = self.results[again.task.task_id, 1]
        is_fresh = origin_of(again.task.website) in self.fresh or not any(
            map(is_recorded_write, self._walks[again.task.task_id].exchanges)
        )
        return is_fresh and (first.actions, first.passed) == (again.actions, again.passed) and not again.is_aborted

    def recording(self) -> SiteRecording:
        unlike = set(self.unlike)
        recordings = [
            self._done(each.recording())
            for each in self._walks.values()
            if each.exchanges and (each.walk.repeats is None or each.walk.task_id not in unlike)
        ]
        # As they are: `merged` knows which walk repeats another only within one recording.
        walks = tuple(walk for each in recordings for walk in each.walks)
        return SiteRecording(walks, tuple(exchange for each in recordings for exchange in each.exchanges))

    def _done(self, recording: SiteRecording) -> SiteRecording:
        """The recording with the outcome of its walk."""
        outcomes = {task_id: each.passed for (task_id, play), each in self.results.items() if play == 1}
        walks = tuple(replace(walk, passed=outcomes.get(walk.task_id or "")) for walk in recording.walks)
        return replace(recording, walks=walks)


async def _record_played(
    scenario: Scenario,
    selection: Sequence[Task],
    settings: Settings,
    recorded: _WalkRecorder,
    role: str | None,
    *,
    is_once: bool,
) -> int:
    if role is None:
        tasks = reference_tasks(selection, scenario)
        if not tasks:
            raise ConfigError(
                f"{scenario.path}: no task has a reference script",
                remedy='add reference = "replay.toml" to the tasks, or give --participant or --by-hand',
            )
        player = script_player(tasks, scenario)
    else:
        tasks, player = tuple(selection), participant_of(scenario, role, settings)
    playing = Playing(scenario, settings, player, _tell, logins=recorded, recorder=recorded.attempt)
    results = await playing.play(tasks)
    recorded.done(results)
    # A participant may act otherwise the second time, and then it is not known who chose what differs.
    again = [each.task for each in results if not (is_once or role or each.is_aborted)]
    if again:
        typer.echo("Playing each task once more, to see what pages make up …")
        recorded.play = 2
        recorded.done(await playing.play(tuple(again)))
        for task_id in recorded.unlike:
            typer.echo(f"{task_id}: the second play differed or began in another state, so it counts as played once")
    is_good = all(each.passed is not False and not each.is_aborted for each in results)
    return EXIT_DONE if is_good else EXIT_LOST


async def _record_by_hand(
    scenario: Scenario, tasks: Sequence[Task], settings: Settings, recorded: _WalkRecorder
) -> int:
    config = scenario.config
    websites = list(dict.fromkeys(task.website for task in tasks))
    policy = NetworkPolicy.for_websites(site for task in tasks for site in config.sites.declared(task))
    interceptor = recorded.by_hand(tasks[0].task_id if len(tasks) == 1 else None)
    environ = child_environ(settings, output_dir=Path.cwd(), participant_model=None)
    folder = scenario.path.resolve().parent
    logs = Path.cwd() / ".output" / "logs"
    members = started_sites(scenario, tasks, settings)
    async with launched(members, scenario_dir=folder, environ=environ, logs=logs):
        typer.echo(f"Recording {', '.join(websites)}. Close the browser to end.")
        await browse_by_hand(websites, settings, interceptor, policy, browser_path=config.browser_path)
    return EXIT_DONE


def _replayed(scenario: Scenario, archive: Path, ids: Sequence[str], settings: Settings) -> list[AttemptResult]:
    frozen, archives = opened(scenario, settings, archive)
    selection = select(frozen.tasks, ids=ids, excluded=frozen.excluded)
    tasks = reference_tasks(selection if ids else tasks_of(archive, selection, scenario), frozen)
    if not tasks:
        raise ConfigError(f"{scenario.path}: no task has a reference script", remedy="add reference to the tasks")
    playing = Playing(frozen, settings, script_player(tasks, frozen), _tell, archives=archives)
    results: list[AttemptResult] = []

    async def play() -> int:
        results.extend(await playing.play(tasks))
        return EXIT_DONE

    run_interruptible(play())
    return results


def tasks_of(archive: Path, tasks: Sequence[Task], scenario: Scenario) -> list[Task]:
    """The tasks without those on sites for which the scenario names another archive."""
    folder = scenario.path.resolve().parent
    other = {
        origin_of(site.endpoint)
        for site in scenario.sites
        if site.archive and (folder / Path(site.archive).expanduser()).resolve() != archive.resolve()
    }
    return [task for task in tasks if origin_of(task.website) not in other]


def _live(scenario: Scenario) -> Scenario:
    """The scenario with all its sites live, even those for which it names an archive."""
    sites = tuple(site.model_copy(update={"archive": None, "archive_sha256": None}) for site in scenario.sites)
    return scenario.model_copy(update={"sites": sites})


def _require_ending(path: Path) -> None:
    if path.suffix.lower() != _ENDING:
        raise ConfigError(f"--output {path}: not an archive's name", remedy=f"use a name that ends in {_ENDING}")


def _tell(event: Event) -> None:
    if isinstance(event, TaskStarted):
        again = f" again (attempt {event.attempt})" if event.attempt > 1 else ""
        typer.echo(f"{event.task_id}: playing{again} …")
    elif isinstance(event, StepDone):
        typer.echo(f"{event.task_id}: step {event.step}: {one_line(event.action, 120)}")
    elif isinstance(event, TaskDone):
        typer.echo(
            f"{event.task_id}: {event.outcome} after {counted(event.steps, 'step')}: {one_line(event.reason, 200)}"
        )


def _tell_archive(path: Path, recording: SiteRecording, digest: str) -> None:
    kinds = Counter(
        "failures" if each.answer is None else "sockets" if each.is_socket else "answers"
        for each in recording.exchanges
    )
    kinds_text = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    typer.echo(
        f"{path}: {counted(len(recording.walks), 'walk')}, {kinds_text}, {path.stat().st_size / 1000:,.0f} kB,"
        f" archive_sha256 {digest}"
    )


COMMAND = Command(
    sites,
    (
        "wabe sites record scenario.toml -o shop.wacz",
        "wabe sites check shop.wacz --scenario scenario.toml",
        "wabe sites merge a.wacz b.wacz -o both.wacz",
    ),
)
