"""The options of `wabe run`: for the command line only, and the settings of `[config]` that have an option."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.fields import FieldInfo

from judge.config import RunConfig
from judge.records.tasks import Level
from shared.declarations import Option, Setting, names_of, settings_in
from shared.models import Record
from shared.plugins import PluginOptions, extended

if TYPE_CHECKING:
    # Not needed for help.
    from judge.store.layout import RunStore
    from shared.settings import Settings

DEFAULT_OUTPUT_DIR = Path(".output")
Display = Literal["full", "plain", "json", "none"]
# Of options about one start, and those about the run as a whole.
_OF_A_START: Any = {"of_each": False, "of_trivial": False}


class RunOptions(Record):
    """The command line. `command` is the part with the command and scenario, for messages to the user.

    An option that has a setting of `[config]` is declared there, and is given here by the name of the setting: see
    `chosen`. `player` is the trivial agent that plays in the place of the scenario's participant. `own_run_id` is
    the id that who starts this run has chosen: it begins under it or continues.
    """

    model_config = ConfigDict(extra="allow")

    scenario: Path
    command: tuple[str, ...] = ()
    player: str | None = None
    own_run_id: str | None = None
    # A person shows a task, so that nothing is scored.
    is_demonstration: bool = False

    agent: Annotated[
        tuple[str, ...],
        Setting(
            option=Option(
                "Play with this agent: an address, image:NAME, a folder, a .toml file, a bundled participant,"
                " mcp:COMMAND, or a command with {port}; repeatable.",
                metavar="[ROLE=]AGENT",
            ),
            of_trivial=False,
        ),
    ] = ()
    sandbox: Annotated[
        bool,
        Setting(option=Option("Let a program over MCP reach its tools and its model's meter only."), of_trivial=False),
    ] = False
    show_logs: Annotated[
        bool, Setting(option=Option("Show the agents' logs while they run.", is_repeated=False), of_each=False)
    ] = False
    serve_only: Annotated[
        bool, Setting(option=Option("Start everything but send no request.", is_repeated=False), of_each=False)
    ] = False
    open_report: Annotated[
        bool,
        Setting(
            option=Option("Open the report in the browser at the end.", flag="open", is_repeated=False), **_OF_A_START
        ),
    ] = False
    output: Annotated[
        Path | None, Setting(option=Option("Also write the leaderboard submission here."), **_OF_A_START)
    ] = None
    output_dir: Annotated[Path, Setting(option=Option("The folder for runs.", is_repeated=False), of_each=False)] = (
        DEFAULT_OUTPUT_DIR
    )
    resume: Annotated[
        str | None,
        Setting(
            option=Option(
                "Resume what was interrupted; without an id, the newest unfinished run.",
                metavar="[ID]",
                is_repeated=False,
            ),
            **_OF_A_START,
        ),
    ] = None
    limit: Annotated[int | None, Setting(option=Option("Run the first N tasks only."))] = Field(default=None, ge=1)
    level: Annotated[Level | None, Setting(option=Option("Run tasks of this level only."))] = None
    task: Annotated[tuple[str, ...], Setting(option=Option("Run only this task; repeatable."))] = ()
    where: Annotated[
        tuple[str, ...], Setting(option=Option("Run only tasks with these metadata; repeatable.", metavar="KEY=VALUE"))
    ] = ()
    exclude: Annotated[
        tuple[str, ...],
        Setting(
            option=Option(
                "Do not play this task, but count it in the rate of all tasks; repeatable.", metavar="ID=REASON"
            )
        ),
    ] = ()
    participant_model: Annotated[
        str | None, Setting(option=Option("Model for the participant.", variable="participant_model"), of_trivial=False)
    ] = None
    display: Annotated[
        Display | None,
        Setting(
            option=Option(
                "A live table; a line per task; a JSON line per event; or nothing. [default: full, piped: plain]",
                is_repeated=False,
            ),
            of_each=False,
        ),
    ] = None
    fail_under: Annotated[
        float | None,
        Setting(
            option=Option("Exit with 1 if the success rate of all tasks is below this.", metavar="PERCENT"),
            **_OF_A_START,
        ),
    ] = None
    trivial_agents: Annotated[
        bool,
        Setting(
            option=Option("Then play the tasks at random and by doing nothing, for comparison.", old_flag="baselines"),
            **_OF_A_START,
        ),
    ] = False
    linger: Annotated[
        bool,
        Setting(
            option=Option("Keep the live page up after the run, with the report, until Ctrl-C.", is_repeated=False),
            **_OF_A_START,
        ),
    ] = False
    archive: Annotated[
        Path | None,
        Setting(option=Option("Play on recorded sites: this archive answers instead of the network.", metavar="FILE")),
    ] = None
    record_trace: Annotated[
        bool,
        Setting(
            option=Option("Keep Playwright's own trace of each attempt, with passwords and cookies as they were."),
            of_trivial=False,
        ),
    ] = False
    shards: Annotated[
        str | None,
        Setting(
            option=Option(
                "Run one shard of N: the one that Kubernetes, Slurm or WABE_SHARD names.",
                metavar="auto|N",
                is_repeated=False,
            ),
            of_each=False,
        ),
    ] = None
    engine: Annotated[
        str,
        Setting(
            option=Option("ray: play all of --shards N on Ray, and merge them.", metavar="NAME", is_repeated=False),
            of_each=False,
        ),
    ] = "local"

    @model_validator(mode="after")
    def _knows_its_settings(self) -> Self:
        if unknown := self.chosen.keys() - names_of(RunConfig, lambda setting: setting.option):
            raise ValueError(f"no options: {', '.join(sorted(unknown))}")
        return self

    @property
    def chosen(self) -> dict[str, Any]:
        """The settings of `[config]` that the command line sets, by name."""
        return {name: value for name, value in (self.model_extra or {}).items() if value is not None}

    def value(self, name: str) -> Any:
        """The value of an option by its field; `None` for a setting of `[config]` that is not set."""
        return getattr(self, name, None)

    def with_environment(self, settings: "Settings") -> Self:
        """With what the environment sets, where the option is absent."""
        variables = {each.name: each.option.variable for each in declared_options() if each.option.variable}
        values = {name: self.value(name) or getattr(settings, variable) for name, variable in variables.items()}
        return self.model_copy(update={name: value for name, value in values.items() if value})

    def words(self, is_meant: Callable[["DeclaredOption"], bool]) -> list[str]:
        """The options that are set and meant, as command line arguments."""
        words: list[str] = []
        for each in declared_options():
            value = self.value(each.name) if is_meant(each) else None
            for item in value if isinstance(value, tuple) else (value,):
                words += ([each.flag] if item is True else [each.flag, str(item)]) if item else []
        return words

    def of_each_shard(self) -> list[str]:
        """The arguments of `wabe run` for every shard of this run."""
        return self.words(lambda each: each.setting.of_each)

    def of_trivial_agent(self, player: str, output_dir: Path) -> Self:
        """The options of the run in which `player` plays the same tasks, in its own folder."""
        left_out = {
            each.name: each.field.get_default(call_default_factory=True)
            for each in declared_options()
            if not each.setting.of_trivial
        }
        # Its progress is of no use to a program that reads the events of the run.
        display = "none" if self.display == "json" else self.display
        own = {"output_dir": output_dir, "display": display, "player": player, "name": player}
        return self.model_copy(update={**left_out, **own})


class DeclaredOption(NamedTuple):
    """An option: the name of its field, the field, and what is declared about it."""

    name: str
    field: FieldInfo
    setting: Setting
    option: Option

    @property
    def flag(self) -> str:
        """The option as it is typed."""
        return f"--{(self.option.flag or self.name).replace('_', '-')}"


def declared_options() -> list[DeclaredOption]:
    """All options, in the order of help."""
    options: list[DeclaredOption] = []
    for each in (*_declared(RunOptions), *_declared(RunConfig)):
        places = [place for place, other in enumerate(options) if other.name == each.option.before]
        options.insert(places[0] if places else len(options), each)
    return options


def _declared(model: type[RunConfig | RunOptions]) -> Iterator[DeclaredOption]:
    for name, field, setting in settings_in(model):
        if setting.option is not None:
            yield DeclaredOption(name, field, setting, setting.option)


if not TYPE_CHECKING:
    RunOptions = extended(RunOptions, PluginOptions)


def resume_command(options: RunOptions, store: "RunStore") -> str:
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
    return shlex.join([*words, *options.words(lambda each: each.option.is_repeated), "--resume", run])
