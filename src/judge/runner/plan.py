"""Plans a run: applies the command line to a scenario, and checks the result before anything starts."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from typing import Any

from judge.config import CONFIG, RunConfig
from judge.network.archives import Archives, open_archives, pinned, require_playable
from judge.records.tasks import Task
from judge.results.run_record import (
    compared_parts,
    day_of_run,
    differences,
    require_same_exclusions,
    require_same_request,
    sha256_of,
    task_digests,
)
from judge.runner.configured import check_judge, configured, notes_for_another_judge
from judge.runner.followers import Follower
from judge.runner.instances import placed
from judge.runner.launch import Member
from judge.runner.options import RunOptions
from judge.runner.other_code import rejudging_note
from judge.runner.person import pages_of_people
from judge.runner.place import launch_of, store_of
from judge.runner.shards import balanced_shards, shard_of
from judge.runner.start import Start, start_of
from judge.scenario.draft import RequestDraft
from judge.scenario.frozen import recorded_at
from judge.scenario.logins import expired_logins, with_logins
from judge.scenario.models import Launch, Scenario, Shard
from judge.scenario.pairs import declaring, planned
from judge.scenario.toml import exclusions, idle_sites, select, tasks_about
from judge.scenario.toml import shard as slice_of
from judge.store.layout import RunStore
from shared.errors import WabeError
from shared.plugins import plugins
from shared.settings import Settings
from shared.validation import validated


@dataclass(frozen=True)
class Plan:
    """A run before it starts, according to `options`, in the environment that `settings` are of.

    `draft` is what the judge receives, `None` for a shard without tasks. `store` is `None` if the judge was started
    elsewhere and stores its runs itself. `notes` are for the user. `tasks` are those that will be run, if they are
    known here.
    """

    options: RunOptions
    settings: Settings
    scenario: Scenario
    members: tuple[Member, ...]
    draft: RequestDraft | None
    store: RunStore | None
    notes: tuple[str, ...] = ()
    tasks: tuple[Task, ...] = ()
    resumes: bool = False
    shard: Shard | None = None
    followers: tuple[Follower, ...] = ()
    archives: Archives | None = None
    config: RunConfig | None = None

    @property
    def instances(self) -> Mapping[str, Sequence[str]]:
        """The addresses of the sites' instances, by website."""
        return self.config.site_instances if self.config else {}

    @property
    def request(self) -> str:
        """The text of the request; empty for a shard without tasks."""
        return self.draft.text() if self.draft is not None else ""


@dataclass(frozen=True)
class PlayChoice:
    """What is to be played, and how. `members` are without the sites that no task needs."""

    config: RunConfig
    tasks: tuple[Task, ...]
    members: tuple[Member, ...]
    archives: Archives | None
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _RunTarget:
    """Where it is recorded, and which `tasks` are played here, by a shard a part of them."""

    store: RunStore
    resumes: bool
    launch: Launch
    tasks: tuple[Task, ...]


def make_plan(options: RunOptions, settings: Settings) -> Plan:
    """The scenario with the options applied. Raises `ConfigError`, also if a run cannot be resumed with them."""
    followers: list[Follower] = []
    for each in plugins().values():
        if each.results and (follower := each.results(options)):
            followers.append(follower)
            options = follower.options
    plan = replace(_plan(options, settings), followers=tuple(followers))
    if plan.store is not None:
        for follower in followers:
            follower.planned(plan.store.run_id)
    return plan


def choose(
    options: RunOptions, settings: Settings, today: date | None = None, now: datetime | None = None
) -> tuple[Start, PlayChoice]:
    """What is started, and which tasks are played with which settings. Nothing is read of any run.

    `today` is the day of a run that has begun before, `now` the moment at which its frozen sites were recorded. Raises
    `ConfigError`.
    """
    start = start_of(options, settings, today, now)
    config = _config(start)
    archives = open_archives(config)
    undecided = archives if today is None and now is None else None
    if recorded := recorded_at(start.scenario, undecided):
        return choose(options, settings, now=recorded)
    return start, _choice(start, config, archives, _day_notes(config) if undecided else ())


def _plan(options: RunOptions, settings: Settings, today: date | None = None) -> Plan:
    """`today` is the day of a run that has begun before."""
    start, choice = choose(options, settings, today)
    if not start.is_recorded_here:
        return _planned(start, choice, None)
    place = _place(start, choice)
    if choice.config.today and (day := day_of_run(place.store)) not in (None, choice.config.today):
        return _plan(options, settings, day)
    if place.resumes:
        require_same_exclusions(place.store, choice.config.exclude)
    plan = _planned(start, choice, place)
    return _resumed(plan) if plan.resumes else plan


def _config(start: Start) -> RunConfig:
    """The settings of the run. Raises `ConfigError` if they cannot be used with these processes."""
    config = configured(start)
    check_judge(start, config)
    return config


def _day_notes(config: RunConfig) -> tuple[str, ...]:
    """Says that dates are not relative to the clock of frozen sites, where that is unexpected."""
    if config.today is None or config.settle == "real-time":
        return ()
    why = "not all sites of tasks with dates were recorded on one day"
    return (f"dates are relative to {config.today}, because {why}: play them apart, or set today in [config]",)


def _choice(start: Start, config: RunConfig, archives: Archives | None, notes: tuple[str, ...]) -> PlayChoice:
    """The tasks, with their log-ins, and the settings for them. Raises `ConfigError`."""
    scenario, members = start.scenario, start.members
    notes += () if start.is_ours else notes_for_another_judge(scenario)
    notes += tuple(pages_of_people(scenario))
    config = pinned(config, archives) if archives else config
    if not scenario.tasks:
        return PlayChoice(config, (), members, archives, notes)
    tasks, config = _selected(scenario, config, start.options)
    if archives:
        archives.check(tasks)
        config = archives.excluding(config, tasks)
        require_playable(config, tasks)
    idle = idle_sites(scenario, tasks)
    members = tuple(member for member in members if member.is_agent or member.name not in idle)
    members, config = _on_instances(start, members, config, tasks)
    tasks = with_logins(scenario, tasks, start.settings.environ)
    return PlayChoice(config, tasks, members, archives, (*notes, *expired_logins(tasks, time.time())))


def _on_instances(
    start: Start, members: tuple[Member, ...], config: RunConfig, tasks: Sequence[Task]
) -> tuple[tuple[Member, ...], RunConfig]:
    """The members with the instances of their sites, and the settings that name these."""
    sites = start.scenario.sites
    tasks_planned = planned(tasks, config)
    attempts = {
        site.endpoint: tasks_about(site.endpoint, tasks_planned, config.sites) * config.epochs for site in sites
    }
    # Only a judge started here gets the addresses of those that are.
    slots = {site: min(config.max_parallel, count) for site, count in attempts.items() if start.is_recorded_here}
    placed_members = placed(members, sites, slots)
    addresses = {
        site: each for site, each in placed_members.addresses.items() if start.is_recorded_here or each != (site,)
    }
    return placed_members.members, config.model_copy(update={"site_instances": addresses}) if addresses else config


def _selected(scenario: Scenario, config: RunConfig, options: RunOptions) -> tuple[tuple[Task, ...], RunConfig]:
    """The tasks of the run, and the settings with those that it excludes. Raises `ConfigError`."""
    tasks = select(
        scenario.tasks,
        limit=options.limit,
        level=options.level,
        ids=options.task,
        where=options.where,
        excluded=scenario.excluded,
    )
    tasks = declaring(tasks, config)
    exclude = exclusions(options.exclude, tasks, scenario.excluded)
    if exclude:
        settings = {**config.model_dump(exclude_unset=True), "exclude": exclude}
        config = validated(CONFIG, settings, "config, as --exclude sets it")
    return tasks, config


def _place(start: Start, choice: PlayChoice) -> _RunTarget:
    """The folder of the run, and the part of it played here."""
    launch, tasks, config = launch_of(start, choice.members), choice.tasks, choice.config
    if start.options.shards is not None:
        tasks = tasks[: config.num_instances]
        shard = shard_of(start.options.shards, start.settings.environ)
        # As the judges count them: a task under an attack or a variant is a separate one.
        tasks_planned = planned(tasks, config)
        shard = shard.model_copy(update={"tasks_sha256": sha256_of(task_digests(tasks_planned))})
        tasks = balanced_shards(tasks, shard.of, max_steps=config.max_steps)[shard.index]
        launch = launch.model_copy(update={"shard": shard})
    store, resumes = store_of(start, launch)
    # The scenario was opened with the key.
    return _RunTarget(store.without_key(), resumes, launch, tasks)


def _planned(start: Start, choice: PlayChoice, place: _RunTarget | None) -> Plan:
    """The plan of a run recorded in a place here, or by a judge elsewhere."""
    config = choice.config if place is None else choice.config.model_copy(update={"run_id": place.store.run_id})
    tasks = choice.tasks if place is None else place.tasks
    launch = None if place is None else place.launch
    shard = launch.shard if launch else None
    headers = {member.name: member.headers for member in start.members if member.headers}
    draft = RequestDraft.of(start.scenario, tasks=tasks, config=config, launch=launch, headers=headers)
    return Plan(
        start.options,
        start.settings,
        start.scenario,
        choice.members,
        None if shard and not tasks else draft,
        store=place.store if place else None,
        notes=choice.notes,
        tasks=tasks,
        resumes=bool(place and place.resumes and (tasks or not shard)),
        shard=shard,
        archives=choice.archives,
        config=config,
    )


def _resumed(plan: Plan) -> Plan:
    """With a note on recorded attempts judged again. Raises `ConfigError` if the run had another request."""
    assert plan.store is not None
    assert plan.draft is not None
    require_same_request(plan.store, _compared(plan.draft), unknown=_known_to_the_judge(plan.draft))
    note = rejudging_note(plan.store, plan.draft.config.prompts)
    return plan if note is None else replace(plan, notes=(*plan.notes, note))


def require_as_planned(plan: Plan) -> None:
    """Raises `WabeError` unless the run merged from shards is the one that was planned, as a whole."""
    assert plan.store is not None
    assert plan.draft is not None
    changes = differences(plan.store, _compared(plan.draft), unknown=_known_to_the_judge(plan.draft))
    if changes:
        raise WabeError(
            f"the shards of run {plan.store.run_id} did not play what this command asks for:\n  " + "\n  ".join(changes)
        )


def _compared(draft: RequestDraft) -> dict[str, Any]:
    """The parts of the request that can affect a result, as the judge will record them."""
    config = draft.config
    mine = slice_of(draft.tasks_to_play, config.shard_index, config.num_shards, instances=config.num_instances)
    return compared_parts(draft.participants, config, mine, launch=draft.launch)


def _known_to_the_judge(draft: RequestDraft) -> list[str]:
    """The parts that only the judge knows, which it compares itself."""
    unknown = ["judge"]
    unknown += [] if draft.tasks else ["tasks"]
    return unknown + ([] if "judge_model" in draft.config.model_fields_set else ["config.judge_model"])
