"""The summary of a matrix: agents in rows, task sets in columns."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from judge.results.entries import rate_of, read_entries
from judge.results.identity import identity_in, player
from judge.results.metering import PARTICIPANT_COST
from judge.results.rates import Rate
from judge.store.layout import RunStore
from shared.errors import ConfigError
from shared.fields import as_mapping
from shared.files import read_json
from shared.text import one_line

_NOTE = "Cost per success: the agent's model calls (- if they were not metered) + judging (- if its price is unknown)."
_MAX_WIDTH = 1000


class CellFigures(NamedTuple):
    """What a run has achieved, and who played it, as its card and `--name` say. Costs are in US dollars, time in s."""

    rate: Rate
    agent_cost: float | None
    judge_cost: float | None
    duration_s: float
    player: str


def figures_of(store: RunStore) -> CellFigures | None:
    """The figures of a run; `None` without results that can be read."""
    try:
        (result, *_) = read_json(store.folder / "results.json")["results"]
        detail, record = result["detail"], store.read_run() or {}
        tasks = [task for task in read_entries(detail["tasks"]) if task.is_clean]
        return CellFigures(
            rate=rate_of(tasks),
            agent_cost=detail.get(PARTICIPANT_COST),
            judge_cost=detail.get("cost_usd"),
            duration_s=sum(task.duration_s or 0.0 for task in tasks),
            player=player(identity_in(as_mapping(record)), str(result.get("winner", ""))),
        )
    except (OSError, ConfigError, KeyError, TypeError, ValueError):
        return None


def print_table(console: Console, rows: Sequence[tuple[str, str, CellFigures | None]]) -> None:
    """Print the figures of each agent (first) on each task set (second)."""
    sets = list(dict.fromkeys(name for _, name, _ in rows))
    table = Table(
        "Agent",
        *sets,
        title="Success rate (95 % interval), cost per success, time of all attempts (min:s)",
        title_justify="left",
    )
    by_agent: dict[str, dict[str, CellFigures | None]] = {}
    for agent, name, figures in rows:
        by_agent.setdefault(agent, {})[name] = figures
    for agent, agent_figures in by_agent.items():
        who = dict.fromkeys(figures.player for figures in agent_figures.values() if figures is not None)
        cells = [_cell(agent_figures.get(name)) if name in agent_figures else "" for name in sets]
        table.add_row("\n".join([agent, *(one_line(each, 60) for each in who)]), *cells)
    # In a file or pipe, nothing is cut or folded.
    if not console.is_terminal:
        console = Console(file=console.file, width=_MAX_WIDTH, quiet=console.quiet)
    console.print(table, Text(_NOTE, style="dim"), sep="\n", highlight=False)


def _cell(figures: CellFigures | None) -> str:
    if figures is None:
        return "no result"
    rate = figures.rate
    incomplete_note = "" if rate.rate is None or rate.is_complete else ", incomplete"
    share = (
        "not scored" if rate.rate is None else f"{rate.rate:.1f} % ({rate.low:.1f} to {rate.high:.1f}){incomplete_note}"
    )
    cost = " + ".join(_per_success((figures.agent_cost, figures.judge_cost), rate.counts["success"]))
    minutes, seconds = divmod(round(figures.duration_s), 60)
    return f"{share}\n{cost}, {minutes}:{seconds:02d}"


def _per_success(costs: Iterable[float | None], successes: int) -> Iterable[str]:
    for cost in costs:
        yield "-" if cost is None else f"${cost / successes:.4f}" if successes else f"${cost:.4f} without success"
