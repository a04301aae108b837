"""Several agents on several task sets with one command. Each pair is a cell: an ordinary run in a separate process.

A cell knows nothing of the matrix, and the matrix knows nothing of a run but its id: `matrices/<id>.json` lists the
cells with the ids of their runs, which are chosen before the first one starts.
"""

import asyncio
import hashlib
import json
import re
import shlex
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from judge.browser.orphans import end_with_parent
from judge.plugins.matrix.table import figures_of, print_table
from judge.results.run_record import is_finished
from judge.runner.agents import agents_of, label_of, line_ups
from judge.runner.boundary import EXIT_LOST, Interrupted
from judge.runner.options import DEFAULT_OUTPUT_DIR, RunOptions
from judge.runner.plan import make_plan
from judge.runner.terminal import print_json
from judge.scenario.toml import load_scenario
from judge.store.layout import RUN_ID, RunStore, new_run_id
from judge.store.locks import locked
from judge.store.matrices import Cell, Matrix, read_matrix, stored_matrices
from judge.store.sealing import SealKey, key_in
from shared.engines import Engine
from shared.errors import ConfigError
from shared.files import require_writable, write_errors, write_json
from shared.settings import Settings
from shared.text import counted

_CELL = "judge.plugins.matrix.cell"
_STOP_S = 120
_MAX_LINE_BYTES = 1_000_000


@dataclass(frozen=True)
class CellRequest:
    """A cell as the command line asks for it: a scenario as it was typed, its file, and its `[ROLE=]AGENT`."""

    argument: str
    path: Path
    agents: tuple[str, ...]
    scenario: str
    agent: str

    @property
    def sha256(self) -> str:
        """What a resumed matrix must have in common with the one that was started. A digest: commands may be secret."""
        return hashlib.sha256(json.dumps([str(self.path.resolve()), *self.agents]).encode()).hexdigest()

    @property
    def file(self) -> str:
        """A name for the files of this cell, without their ending."""
        return re.sub(r"[^\w.-]+", "-", f"{self.scenario}-{self.agent}")


def asked_for(scenarios: Mapping[str, Path], agents: Sequence[str], key: SealKey | None = None) -> list[CellRequest]:
    """The cells of these scenarios and `--agent` options: all task sets of an agent, then of the next one.

    `key` opens sealed task sets.

    Raises `ConfigError`.
    """
    roles = {
        argument: [each.role for each in load_scenario(path, key=key).participants]
        for argument, path in scenarios.items()
    }
    line_ups_by_scenario = {argument: line_ups(agents, roles[argument]) for argument in scenarios}
    players = list(
        dict.fromkeys(line_up for line_ups_of_one in line_ups_by_scenario.values() for line_up in line_ups_of_one)
    )
    labels = {
        line_up: "+".join(map(label_of, agents_of(line_up, of).values())) or "-".join(of)
        for argument, of in roles.items()
        for line_up in line_ups_by_scenario[argument]
    }
    names = dict(zip(scenarios, _unique(map(_set_name, scenarios, scenarios.values())), strict=True))
    players_by_name = dict(zip(players, _unique(labels[each] for each in players), strict=True))
    return [
        CellRequest(argument, path, line_up, names[argument], players_by_name[line_up])
        for line_up in players
        for argument, path in scenarios.items()
        if line_up in line_ups_by_scenario[argument]
    ]


def _set_name(argument: str, path: Path) -> str:
    return path.resolve().parent.name if path.name == "scenario.toml" else path.stem


def _unique(names: Iterable[str]) -> list[str]:
    """The names, with a number where one is repeated."""
    seen, unique = Counter[str](), []
    for name in names:
        seen[name] += 1
        unique.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return unique


def run_several(
    options: RunOptions, scenarios: Mapping[str, Path], settings: Settings
) -> Callable[[Console], Coroutine[Any, Any, int]] | None:
    """What plays these scenarios and agents, if they are several. Raises `ConfigError`."""
    is_one = len(scenarios) == 1 and not options.agent
    requests = [] if is_one else asked_for(scenarios, options.agent, key_in(settings.seal_key))
    if len(requests) > 1:
        start = options.model_copy(update={"command": options.command[:-1]})
        return lambda console: run_matrix(start, requests, settings, console)
    if matrix := find_matrix(options.resume or "", options.output_dir):
        problem = f"--resume {options.resume} is a matrix of {len(matrix.cells)} runs, and this command asks for one"
        raise ConfigError(problem, remedy="repeat the scenarios and agents of its start, or give the id of one run")
    return None


async def run_matrix(options: RunOptions, requests: Sequence[CellRequest], settings: Settings, console: Console) -> int:
    """Play all cells, or those that are left. Returns the worst exit code; raises `Interrupted` with the command
    that continues.
    """
    _require_possible(options)
    matrix = _resumed(options, requests) if options.resume else _new(requests)
    runs = {each.asked_sha256: each.run_id for each in matrix.cells}
    cells = {each: _options_of(options, each, runs[each.sha256]) for each in requests}
    several = len({each.argument for each in cells}) > 1
    for request, own in cells.items():
        # Nothing starts before the last cell can.
        try:
            make_plan(own, settings)
        except ConfigError as error:
            if error.location or not several:
                raise
            raise ConfigError(error.message, location=request.argument, remedy=error.remedy) from None
    folder = options.output_dir / "matrices"
    with write_errors(f"cannot write under {folder}", "choose another --output-dir or free some space"):
        folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / f".{matrix.matrix_id}.lock", f"matrix {matrix.matrix_id}"):
        with write_errors(f"cannot write under {folder}", "choose another --output-dir or free some space"):
            write_json(folder / f"{matrix.matrix_id}.json", matrix.model_dump(mode="json"))
        verb = "Resuming matrix" if options.resume else "Matrix"
        console.out(f"{verb} {matrix.matrix_id}: {counted(len(cells), 'run')}", highlight=False)
        try:
            codes = await _play_cells(cells, options.value("parallel_agents"), console)
        except asyncio.CancelledError:
            remedy = f"resume with: {_resume_command(options, requests, matrix.matrix_id)}"
            raise Interrupted("interrupted, everything is stopped", remedy=remedy) from None
    _show(cells, codes, matrix, options, console)
    return max(codes.values())


def _require_possible(options: RunOptions) -> None:
    for is_problem, option, problem, remedy in (
        (options.shards is not None, "--shards", "divides one run, not several", "give one scenario and one agent"),
        (options.serve_only, "--serve-only", "is for one run", "give one scenario and one agent"),
        (options.linger, "--linger", "is for one run", "give one scenario and one agent, or leave it out"),
        (
            options.display == "json" and options.value("parallel_agents") > 1,
            "--display json",
            "cannot tell apart runs that are played at once",
            "leave out --parallel-agents",
        ),
    ):
        if is_problem:
            raise ConfigError(f"{option} {problem}", remedy=remedy)


def _options_of(options: RunOptions, cell: CellRequest, run_id: str) -> RunOptions:
    """The options of one cell: its files are in the folders that the options name. Raises `ConfigError`."""
    own: dict[str, Any] = {
        "scenario": cell.path,
        "agent": cell.agents,
        "command": (*options.command, cell.argument),
        "own_run_id": run_id,
        "resume": None,
        "parallel_agents": 1,
    }
    if options.value("parallel_agents") > 1 and options.display != "none":
        own["display"] = "plain"
    for name, ending in (("output", ".json"), ("junit", ".xml")):
        if (folder := options.value(name)) is not None:
            own[name] = folder / f"{cell.file}{ending}"
            with write_errors(f"--{name} {folder}", "with several runs it names a folder"):
                folder.mkdir(parents=True, exist_ok=True)
                require_writable(own[name])
    if (folder := options.value("baseline")) is not None:
        own["baseline"] = str(Path(folder) / f"{cell.file}.json")
        if not Path(own["baseline"]).is_file():
            remedy = "with several runs, name a folder that --output has written"
            raise ConfigError(f"--baseline {folder}: {cell.file}.json is missing", remedy=remedy)
    return options.model_copy(update=own)


def _new(requests: Sequence[CellRequest]) -> Matrix:
    cells = tuple(
        Cell(scenario=each.scenario, agent=each.agent, asked_sha256=each.sha256, run_id=new_run_id())
        for each in requests
    )
    return Matrix(matrix_id=new_run_id(), started_at=time.time(), cells=cells)


def _resumed(options: RunOptions, cells: Sequence[CellRequest]) -> Matrix:
    """The matrix that `--resume` names, or the newest unfinished one of these cells. Raises `ConfigError`."""
    digests = {each.sha256 for each in cells}
    if options.resume == "latest":
        for matrix in reversed(stored_matrices(options.output_dir)):
            is_left = any(not is_finished(RunStore(options.output_dir, each.run_id)) for each in matrix.cells)
            if is_left and {each.asked_sha256 for each in matrix.cells} == digests:
                return matrix
        raise ConfigError(
            f"no unfinished matrix of these {len(digests)} runs under {options.output_dir / 'matrices'}",
            remedy="repeat its scenarios and agents, or start a new one without --resume",
        )
    stored = find_matrix(options.resume or "", options.output_dir)
    if stored is None:
        raise ConfigError(
            f"--resume: no matrix {options.resume} under {options.output_dir / 'matrices'}",
            remedy=f"this command asks for {len(digests)} runs: give the id of their matrix, or one scenario and agent",
        )
    if {each.asked_sha256 for each in stored.cells} != digests:
        cells_text = ", ".join(f"{each.scenario} × {each.agent}" for each in stored.cells)
        raise ConfigError(
            f"matrix {stored.matrix_id} has other scenarios or agents: {cells_text}", remedy="repeat those of its start"
        )
    return stored


def find_matrix(matrix_id: str, output_dir: Path) -> Matrix | None:
    """The stored matrix of that id, if there is one. Raises `ConfigError` if it cannot be read."""
    path = output_dir / "matrices" / f"{matrix_id}.json"
    if not RUN_ID.fullmatch(matrix_id) or not path.is_file():
        return None
    try:
        return read_matrix(path)
    except (OSError, ValueError):
        raise ConfigError(f"{path} cannot be read as a matrix", remedy="start a new one without --resume") from None


def _resume_command(options: RunOptions, cells: Iterable[CellRequest], matrix_id: str) -> str:
    words = [*options.command, *dict.fromkeys(each.argument for each in cells)]
    if options.output_dir != DEFAULT_OUTPUT_DIR:
        words += ["--output-dir", str(options.output_dir)]
    return shlex.join([*words, *options.words(lambda each: each.option.is_repeated), "--resume", matrix_id])


async def _play_cells(
    cells: Mapping[CellRequest, RunOptions], at_once: int, console: Console
) -> dict[CellRequest, int]:
    """The exit code of each cell. Agents are played one after the other, or some of them at once."""
    slots, codes = asyncio.Semaphore(at_once), dict[CellRequest, int]()

    async def play(agent: str) -> None:
        async with slots:
            for each, options in cells.items():
                if each.agent == agent:
                    codes[each] = await _play(each, options, console, is_alone=at_once == 1)

    agents = dict.fromkeys(each.agent for each in cells)
    # All of them end before this does, also when it is cancelled.
    for result in await asyncio.gather(*map(play, agents), return_exceptions=True):
        if isinstance(result, BaseException):
            raise result
    return codes


async def _play(cell: CellRequest, options: RunOptions, console: Console, *, is_alone: bool) -> int:
    """Play a cell in a separate process. Alone, it has the terminal; otherwise its lines are shown with its name."""
    name = f"{cell.scenario} × {cell.agent}"
    if options.display == "json":
        print_json(console, "cell", scenario=cell.scenario, agent=cell.agent, run_id=options.own_run_id)
    else:
        console.out(
            f"\n{name}: run {options.own_run_id}" if is_alone else f"{name} | run {options.own_run_id}", highlight=False
        )
    pipe = None if is_alone else asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", _CELL),
        stdin=asyncio.subprocess.PIPE,
        stdout=pipe,
        stderr=None if is_alone else asyncio.subprocess.STDOUT,
        # Ctrl-C must only reach this process, which stops the others in order.
        start_new_session=True,
        preexec_fn=end_with_parent,
        limit=_MAX_LINE_BYTES,
    )
    try:
        assert process.stdin is not None
        process.stdin.write(options.model_dump_json(exclude_defaults=True).encode())
        process.stdin.close()
        async for line in _lines_of(process):
            console.out(f"{name} | {line}", highlight=False)
        await process.wait()
    finally:
        if process.returncode is None:
            await asyncio.shield(_stop_cell(process))
    # Killed by a signal: something was lost.
    return EXIT_LOST if process.returncode is None or process.returncode < 0 else process.returncode


async def _lines_of(process: asyncio.subprocess.Process) -> AsyncIterator[str]:
    """What a process writes, unless it writes to the terminal itself."""
    if process.stdout is not None:
        async for line in process.stdout:
            yield line.decode("utf-8", "replace").rstrip()


async def _stop_cell(process: asyncio.subprocess.Process) -> None:
    """Stop a cell, which then stops what it has started."""
    with suppress(ProcessLookupError):
        process.terminate()
    with suppress(TimeoutError):
        async with asyncio.timeout(_STOP_S):
            # Whatever it still writes must not fill the pipe.
            await process.communicate()
    with suppress(ProcessLookupError):
        process.kill()


def _show(
    cells: Mapping[CellRequest, RunOptions],
    codes: Mapping[CellRequest, int],
    matrix: Matrix,
    options: RunOptions,
    console: Console,
) -> None:
    figures = {each: figures_of(RunStore(options.output_dir, own.own_run_id or "")) for each, own in cells.items()}
    if options.display == "json":
        cell_rows = [
            {"scenario": each.scenario, "agent": each.agent, "run_id": own.own_run_id, "exit_code": codes[each]}
            for each, own in cells.items()
        ]
        print_json(console, "matrix", matrix_id=matrix.matrix_id, exit_code=max(codes.values()), cells=cell_rows)
    rows = [(each.agent, each.scenario, figure) for each, figure in figures.items()]
    print_table(console, rows)
    if max(codes.values()):
        console.out(
            f"What is missing continues with: {_resume_command(options, cells, matrix.matrix_id)}", highlight=False
        )


ENGINE = Engine(run_several=run_several)
