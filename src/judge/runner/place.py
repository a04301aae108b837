"""Where a run is recorded, and what is recorded about its start: a new run, one that is resumed, or a shard."""

import hashlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from judge.results.run_record import newest_unfinished
from judge.runner.launch import Member
from judge.runner.options import RunOptions
from judge.runner.shards import run_id_of
from judge.runner.start import Start
from judge.runner.uploads import open_store
from judge.scenario.models import AgentEntry, Launch, LaunchedProcess
from judge.store.layout import RunStore, find_run, new_run_id, resolve_run
from shared.errors import ConfigError
from shared.settings import Settings

_GIT_TIMEOUT_S = 10


def store_of(start: Start, launch: Launch) -> tuple[RunStore, bool]:
    """The run's folder, and whether the run is resumed: a shard that has begun always is."""
    options, settings = start.options, start.settings
    if options.player is not None:
        store = RunStore(options.output_dir, options.player)
        return store, store.has_begun
    if options.own_run_id is not None:
        store = RunStore(options.output_dir, options.own_run_id)
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


def launch_of(start: Start, members: Sequence[Member]) -> Launch:
    """The processes of the run, for its record."""
    scenario, options, settings = start.declared, start.options, start.settings
    env = {member.name: member.env for member in members}
    variables = {"WABE_PARTICIPANT_MODEL": options.participant_model} if options.participant_model else {}

    def agent(entry: AgentEntry) -> LaunchedProcess:
        if entry.cmd is None:
            return LaunchedProcess(image=entry.image, model=options.participant_model)
        return LaunchedProcess(
            # Digests only, because commands and variables may contain secrets.
            cmd_sha256=_sha256(entry.cmd),
            endpoint=entry.endpoint if start.has_moved else None,
            env_sha256=_sha256(json.dumps(entry.env, sort_keys=True)) if entry.env else None,
            model=Settings.from_environ({**settings.environ, **variables, **env[entry.role]}).participant_model,
        )

    path = scenario.path.resolve()
    return Launch(
        revision=git_revision(path.parent),
        scenario_name=scenario.shown_name,
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
