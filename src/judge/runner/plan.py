"""Plans a run: applies the command line to a scenario, and checks the result before anything starts."""

import hashlib
import json
import shlex
import subprocess
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, replace
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from judge.browser.chromium import find_browser, wanted_by
from judge.browser.display import require_display
from judge.config import CONFIG, RunConfig
from judge.episode.preflight import check_config
from judge.network.archives import Archives, open_archives, pinned, require_playable
from judge.records.attacks import Modes
from judge.records.tasks import Level, Task
from judge.results.other_code import rejudging_note
from judge.results.run_record import (
    compared_parts,
    day_of_run,
    newest_unfinished,
    require_same_exclusions,
    require_same_request,
    sha256_of,
    task_digests,
)
from judge.runner.baseline import Baseline, read_baseline
from judge.runner.launch import Member, members_of
from judge.runner.players import played_by
from judge.runner.shards import balanced_shards, on_free_ports, run_id_of, shard_of
from judge.runner.terminal import Display
from judge.runner.uploads import open_store
from judge.scenario.attacks import declaring, planned, read_unseen
from judge.scenario.frozen import on_archives, recorded_at
from judge.scenario.logins import OPERATORS_ADDRESSES, expired_logins, with_addresses, with_logins
from judge.scenario.models import AgentEntry, Launch, LaunchedProcess, Scenario, Shard, resolved
from judge.scenario.request import parse_request, request_text
from judge.scenario.toml import exclusions, idle_sites, load_scenario, select
from judge.scenario.toml import shard as slice_of
from judge.server.limits import settings_of_the_host
from judge.store.layout import RunStore, find_run, new_run_id, resolve_run
from shared.errors import ConfigError
from shared.models import Record
from shared.seams import Seam
from shared.settings import Settings
from shared.validation import validated

if TYPE_CHECKING:
    from rich.console import Console

DEFAULT_OUTPUT_DIR = Path(".output")
_GIT_TIMEOUT_S = 10
# The options that are repeated in the command that resumes a run.
_AGAIN = (
    "output",
    "limit",
    "level",
    "task",
    "exclude",
    "judge_model",
    "participant_model",
    "name",
    "epochs",
    "fail_under",
    "junit",
    "baseline",
    "baseline_p",
    "archive",
    "attacks",
    "meter",
    "baselines",
)


# An engine: a coroutine that plays a run with options, settings and the console, and returns the exit code.
ENGINES: Seam[Callable[["RunOptions", Settings, "Console"], Coroutine[Any, Any, int]]] = Seam("engines", "--engine")


class RunOptions(Record):
    """The command line. `command` is the part with the command and scenario, for messages to the user."""

    scenario: Path
    command: tuple[str, ...] = ()
    output_dir: Path = DEFAULT_OUTPUT_DIR
    output: Path | None = None
    show_logs: bool = False
    serve_only: bool = False
    open_report: bool = False
    resume: str | None = None
    limit: int | None = None
    level: Level | None = None
    task: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_parallel: int | None = None
    judge_model: str | None = None
    participant_model: str | None = None
    name: str | None = None
    epochs: int | None = None
    display: Display | None = None
    fail_under: float | None = None
    baseline: str | None = None
    baseline_p: float | None = None
    linger: bool = False
    junit: Path | None = None
    shards: str | None = None
    engine: str = "local"
    archive: Path | None = None
    attacks: Modes | None = None
    meter: bool = False
    # Whether participants that know nothing play the same tasks afterwards; and in the run of one of them, its name.
    baselines: bool = False
    player: str | None = None

    def words(self, names: Iterable[str]) -> list[str]:
        """The named options that are set, as command line arguments."""
        words: list[str] = []
        for name in names:
            value = getattr(self, name)
            for each in value if isinstance(value, tuple) else (value,):
                flag = f"--{name.replace('_', '-')}"
                words += ([flag] if each is True else [flag, str(each)]) if each else []
        return words


@dataclass(frozen=True)
class Plan:
    """A run before it starts, according to `options`.

    `request` is the text that the judge receives, empty for a shard without tasks.
    `store` is `None` if the judge was started elsewhere and stores its runs itself. `notes` are for the user.
    `tasks` are those that will be run, if they are known here.
    """

    options: RunOptions
    scenario: Scenario
    members: tuple[Member, ...]
    request: str
    store: RunStore | None
    notes: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    resumes: bool = False
    shard: Shard | None = None
    baseline: Baseline | None = None
    archives: Archives | None = None
    config: RunConfig | None = None


def make_plan(options: RunOptions, settings: Settings) -> Plan:
    """The scenario with the options applied. Raises `ConfigError`, also if a run cannot be resumed with them."""
    if options.baseline is None:
        return _plan(options, settings)
    # Before the run exists, because `latest` means the one before it.
    baseline = read_baseline(options.baseline, options.output_dir)
    plan = _plan(options.model_copy(update={"baseline": baseline.name}), settings)
    if plan.store is not None and plan.store.run_id == baseline.name:
        raise ConfigError(f"--baseline {options.baseline} is the run itself", remedy="name an earlier run")
    return replace(plan, baseline=baseline)


def _plan(options: RunOptions, settings: Settings, today: date | None = None, now: datetime | None = None) -> Plan:
    """`today` is the day of a run that has begun before, `now` the moment at which its frozen sites were recorded."""
    loaded = load_scenario(options.scenario, today=today, now=now)
    declared = on_archives(played_by(loaded, options.player) if options.player else loaded, options.archive)
    scenario = declared if options.shards is None else on_free_ports(declared)
    members = members_of(scenario, settings)
    headers = {member.name: member.headers for member in members if member.headers}
    # With WABE_TRUST_CONFIG, as in containers, the judge trusts this runner and writes to the same folder.
    is_ours = scenario.green_agent.cmd is not None or settings.trust_config
    _require_own_judge(declared, options, is_ours=is_ours)
    if options.shards is not None:
        require_shardable(declared, options, is_ours=is_ours)
    config, notes = _config(scenario, options, settings, is_ours=is_ours)
    if config.meter:
        _require_meterable(scenario, is_ours=is_ours and not options.serve_only)
    _check_judge(scenario, members[-1], config, options, settings)
    archives = open_archives(config)
    undecided = archives if today is None and now is None else None
    if recorded := recorded_at(scenario, undecided):
        return _plan(options, settings, now=recorded)
    notes += _day_notes(config) if undecided else ()
    config = pinned(config, archives) if archives else config
    tasks = scenario.tasks
    if tasks:
        tasks, config = _selected(scenario, config, options)
        if archives:
            archives.check(tasks)
            config = archives.excluding(config, tasks)
            require_playable(config, tasks)
        idle = idle_sites(scenario, tasks)
        members = tuple(member for member in members if member.is_agent or member.name not in idle)
        tasks = with_logins(scenario, tasks, settings.environ)
        notes += tuple(expired_logins(tasks, time.time()))
    if options.serve_only or not is_ours:
        request = request_text(scenario, tasks=tasks, config=config, headers=headers)
        return Plan(options, scenario, members, request, store=None, notes=notes, tasks=tasks)
    launch = _launch(declared, members, options, settings)
    if options.shards is not None:
        launch, tasks = _one_shard(launch, tasks, config, options.shards, settings)
    store, resumes = _store_of(launch, options, settings)
    if config.today and (day := day_of_run(store)) not in (None, config.today):
        return _plan(options, settings, day)
    if resumes:
        require_same_exclusions(store, config.exclude)
    config = config.model_copy(update={"run_id": store.run_id})
    if launch.shard and not tasks:
        return Plan(options, scenario, members, "", store, notes, shard=launch.shard)
    request = request_text(scenario, tasks=tasks, config=config, launch=launch, headers=headers)
    if resumes:
        notes += _resumed(store, request, has_tasks=bool(tasks))
    return Plan(
        options,
        scenario,
        members,
        request,
        store,
        notes,
        tasks,
        resumes,
        launch.shard,
        archives=archives,
        config=config,
    )


def _day_notes(config: RunConfig) -> tuple[str, ...]:
    """Says that dates are not relative to the clock of frozen sites, where that is unexpected."""
    if config.today is None or config.settle == "real-time":
        return ()
    why = "not all sites of tasks with dates were recorded on one day"
    return (f"dates are relative to {config.today}, because {why}: play them apart, or set today in [config]",)


def _require_own_judge(scenario: Scenario, options: RunOptions, *, is_ours: bool) -> None:
    """Raises `ConfigError` for options that need a judge that is started here and receives a request."""
    if options.resume is not None and (options.serve_only or not is_ours):
        raise ConfigError(
            f"{options.scenario}: --resume needs a judge that is started here and receives a request",
            remedy="leave --serve-only out"
            if options.serve_only
            else "give [green_agent] a cmd; a judge that is already running keeps its runs where it is",
        )
    if options.baselines and (options.serve_only or not is_ours):
        raise ConfigError(
            f"{options.scenario}: --baselines needs a judge that is started here and receives a request",
            remedy="give [green_agent] a cmd, and leave --serve-only out",
        )
    if options.baselines and options.shards is not None:
        raise ConfigError(f"{options.scenario}: --baselines does not go with --shards", remedy="leave one of them out")
    if scenario.config.archives and (options.serve_only or not is_ours):
        raise ConfigError(
            f"{options.scenario}: frozen sites need a judge that is started here and receives a request",
            remedy="give [green_agent] a cmd, and leave --serve-only out",
        )


def _require_meterable(scenario: Scenario, *, is_ours: bool) -> None:
    """Raises `ConfigError` if no model call of a participant can be metered."""
    if not is_ours or all(agent.cmd is None for agent in scenario.participants):
        raise ConfigError(
            f"{scenario.path}: --meter needs a judge and a participant that are started here",
            remedy="give both a cmd, or leave --meter out: a participant elsewhere may report its own usage",
        )


def _check_judge(scenario: Scenario, judge: Member, config: RunConfig, options: RunOptions, settings: Settings) -> None:
    """Raises `ConfigError` if the judge is to be started here and cannot work with these settings."""
    if (judge_cmd := scenario.green_agent.cmd) is not None and not options.serve_only:
        # The judge's own environment, because a key may be set only there.
        judge_settings = Settings.from_environ({**settings.environ, **judge.env})
        try:
            check_config(config, judge_settings)
        except ConfigError as error:
            raise _with_source(error, options, settings) from None
        if [Path(word).name for word in shlex.split(judge_cmd)[:2]] == ["wabe", "serve"]:
            # Any other command may run the browser elsewhere, such as in a container.
            find_browser(config.browser_path, judge_settings, wanted=wanted_by(config))
            require_display(config, judge_settings)


def _resumed(store: RunStore, request: str, *, has_tasks: bool) -> tuple[str, ...]:
    """Notes on how resuming treats the recorded attempts. Raises `ConfigError` if the run had another request."""
    # Parsed as the judge will parse it, so that both compare the same parts.
    parsed = parse_request(request, lambda _: ())
    # The judge compares the parts that only it knows.
    unknown = ["judge"]
    unknown += [] if has_tasks else ["tasks"]
    unknown += [] if "judge_model" in parsed.config.model_fields_set else ["config.judge_model"]
    config = parsed.config
    mine = slice_of(parsed.tasks, config.shard_index, config.num_shards, instances=config.num_instances)
    parts = compared_parts(parsed.participants, config, mine, launch=parsed.launch)
    require_same_request(store, parts, unknown=unknown)
    note = rejudging_note(store, config.prompts)
    return () if note is None else (note,)


def _selected(scenario: Scenario, config: RunConfig, options: RunOptions) -> tuple[tuple[Task, ...], RunConfig]:
    """The tasks of the run, and the settings with those that it excludes. Raises `ConfigError`."""
    tasks = select(
        scenario.tasks, limit=options.limit, level=options.level, ids=options.task, excluded=scenario.excluded
    )
    tasks = declaring(tasks, config.attacks)
    exclude = exclusions(options.exclude, tasks, scenario.excluded)
    if exclude:
        settings = {**config.model_dump(exclude_unset=True), "exclude": exclude}
        config = validated(CONFIG, settings, "config, as --exclude sets it")
    return tasks, config


def _with_source(error: ConfigError, options: RunOptions, settings: Settings) -> ConfigError:
    """The error with the source of the mistake: the scenario file, or the option or variable that overrides it."""
    chosen = "--judge-model" if options.judge_model else "WABE_JUDGE_MODEL" if settings.judge_model else None
    if error.key == "config.judge_model" and chosen:
        return ConfigError(error.problem, key=chosen, remedy=error.remedy)
    return ConfigError(error.message, location=str(options.scenario), remedy=error.remedy)


def require_shardable(scenario: Scenario, options: RunOptions, *, is_ours: bool) -> None:
    """Raises `ConfigError` if the run cannot be sharded."""
    for is_problem, problem, remedy in (
        (
            options.serve_only or not is_ours,
            "needs a judge that is started here and receives a request",
            "give [green_agent] a cmd, and leave --serve-only out",
        ),
        (not scenario.tasks, "needs the tasks in the scenario", "list them as [[tasks]]"),
        (
            {"shard_index", "num_shards"} & scenario.config.model_fields_set,
            "divides the tasks itself",
            "remove shard_index and num_shards from [config]",
        ),
        (options.resume == "latest", "needs --resume to name the run", "give its id, or leave --resume out"),
    ):
        if is_problem:
            raise ConfigError(f"{options.scenario}: --shards {problem}", remedy=remedy)


def _one_shard(
    launch: Launch, tasks: tuple[Task, ...], config: RunConfig, option: str, settings: Settings
) -> tuple[Launch, tuple[Task, ...]]:
    """The launch of one shard, and its tasks."""
    tasks = tasks[: config.num_instances]
    shard = shard_of(option, settings.environ)
    # As the judges count them: a task under attack is a task of its own.
    played = planned(tasks, config.attacks, unseen=config.unseen_attacks, exclude=config.exclude)
    shard = shard.model_copy(update={"tasks_sha256": sha256_of(task_digests(played))})
    mine = balanced_shards(tasks, shard.of, max_steps=config.max_steps)[shard.index]
    return launch.model_copy(update={"shard": shard}), mine


def _store_of(launch: Launch, options: RunOptions, settings: Settings) -> tuple[RunStore, bool]:
    """The run's folder, and whether the run is resumed: a shard that has begun always is."""
    if options.player is not None:
        store = RunStore(options.output_dir, options.player)
        return store, store.has_begun
    if launch.shard is None:
        if options.resume is None:
            return RunStore(options.output_dir, new_run_id()), False
        return _run_to_resume(options, launch), True
    whole = find_run(options.resume, options.output_dir) if options.resume else None
    run_id = whole.run_id if whole else run_id_of(settings.environ)
    store = RunStore(whole.output_dir if whole else options.output_dir, f"{run_id}/shards/{launch.shard.name}")
    if settings.object_store and not store.has_begun:
        # An earlier process of this shard may have played on another machine.
        open_store(settings.object_store).fetch(store.run_id, store.folder)
    return store, store.has_begun


def _config(
    scenario: Scenario, options: RunOptions, settings: Settings, *, is_ours: bool
) -> tuple[RunConfig, tuple[str, ...]]:
    """The scenario's settings with the options applied, and a note for each that a foreign judge would reject."""
    config = scenario.config.model_dump(exclude_unset=True, exclude={"run_id"})
    if secrets := scenario.config.secrets:
        where = f"{scenario.path}: [config], key 'secrets'"
        config["secrets"] = tuple(resolved(text, settings.environ, where) for text in secrets)
    if is_ours:
        found = with_addresses(scenario, settings).config
        config |= {key: value for key in OPERATORS_ADDRESSES if (value := getattr(found, key)) is not None}
    foreign = () if is_ours else [name for name in settings_of_the_host(scenario.config) if config.pop(name, None)]
    notes = tuple(
        f"Note: config.{name} is not sent: only the user who starts a judge may set it, and this one already runs."
        for name in foreign
    )
    notes += tuple(
        f"Note: site {site.name} is not restarted: that needs a judge that is started here."
        for site in scenario.sites
        if site.restart and not is_ours
    )
    # The judge copies these ids into the submission.
    config["participant_ids"] = {agent.role: agent.agentbeats_id for agent in scenario.participants}
    config["site_resets"] = scenario.resets
    if not scenario.tasks:
        if options.level or options.task or options.exclude:
            raise ConfigError(
                "--level, --task and --exclude choose among a scenario's own tasks",
                remedy=f"{options.scenario} names a task set that its judge has: use --limit, or list the tasks",
            )
        if options.limit is not None:
            config["num_instances"] = options.limit
    chosen = {name: getattr(options, name) for name in ("name", "max_parallel", "epochs", "attacks")}
    config |= {name: value for name, value in chosen.items() if value is not None}
    config |= {"meter": True} if options.meter else {}
    if config.get("attacks", "off") != "off" and (unseen := read_unseen(scenario.path)):
        config["unseen_attacks"] = unseen
    if judge_model := options.judge_model or settings.judge_model:
        config["judge_model"] = judge_model
    return validated(CONFIG, config, "config, as the options and the environment set it"), notes


def _launch(scenario: Scenario, members: tuple[Member, ...], options: RunOptions, settings: Settings) -> Launch:
    """The processes of the run, for its record."""
    env = {member.name: member.env for member in members}
    chosen = {"WABE_PARTICIPANT_MODEL": options.participant_model} if options.participant_model else {}

    def agent(entry: AgentEntry) -> LaunchedProcess:
        if entry.cmd is None:
            return LaunchedProcess(image=entry.image, model=options.participant_model)
        return LaunchedProcess(
            # Digests only, because commands and variables may contain secrets.
            cmd_sha256=_sha256(entry.cmd),
            endpoint=entry.endpoint if options.shards is not None else None,
            env_sha256=_sha256(json.dumps(entry.env, sort_keys=True)) if entry.env else None,
            model=Settings.from_environ({**settings.environ, **chosen, **env[entry.role]}).participant_model,
        )

    path = scenario.path.resolve()
    return Launch(
        revision=git_revision(path.parent),
        scenario_name=f"{path.parent.name}/{path.name}"[-300:],
        scenario_path=str(path)[-5000:],
        scenario_sha256=scenario.source_checksum,
        participants={entry.role: agent(entry) for entry in scenario.participants},
        sites={
            site.name: LaunchedProcess(
                cmd_sha256=_sha256(site.cmd),
                env_sha256=_sha256(json.dumps(site.env, sort_keys=True)) if site.env else None,
            )
            for site in scenario.sites
            if site.cmd
        },
    )


def git_revision(folder: Path) -> str | None:
    """The commit checked out in `folder`, with `-dirty` if files were changed; `None` outside a repository."""
    # `--exclude=*` ignores all tags, so that the result names a commit.
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_GIT_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        # Git is not installed, or too slow because the folder is on a network.
        return None
    return done.stdout.strip()[:100] or None if done.returncode == 0 else None


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _run_to_resume(options: RunOptions, launch: Launch) -> RunStore:
    if options.resume and options.resume != "latest":
        return resolve_run(options.resume, options.output_dir)
    store = newest_unfinished(options.output_dir, launch)
    if store is None:
        raise ConfigError(
            f"no run under {options.output_dir / 'runs'} is an unfinished run of {options.scenario}",
            remedy="start a new run without --resume, or name one: --resume RUN_ID",
        )
    return store


def resume_command(options: RunOptions, store: RunStore) -> str:
    """The command that resumes this run, with the options that must be the same as before."""
    # A run in another output folder can only be named by its path.
    is_here = store.output_dir.resolve() == options.output_dir.resolve()
    words = list(options.command or ("agentbeats-run", str(options.scenario)))
    run_id, _, shard = store.run_id.partition("/shards/")
    if shard:
        index, of = shard.split("-of-")
        words = [f"WABE_SHARD={int(index)}", *words, "--shards", str(int(of))]
    if options.engine != "local":
        words += ["--engine", options.engine, "--shards", str(options.shards)]
    if is_here and options.output_dir != DEFAULT_OUTPUT_DIR:
        words += ["--output-dir", str(options.output_dir)]
    run = run_id if is_here else str(store.output_dir / "runs" / run_id)
    return shlex.join([*words, *options.words(_AGAIN), "--resume", run])
