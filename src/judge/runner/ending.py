"""What comes after a run: its report, and its page, which may stay up."""

import asyncio
from pathlib import Path
from urllib.parse import urlsplit

from rich.console import Console

from judge.report.build import make_report, open_page
from judge.report.public import make_public_report
from judge.runner.options import RunOptions
from judge.runner.plan import Plan
from judge.runner.terminal import tell_problem
from judge.server.view import serve_run
from judge.store.layout import RunStore
from shared.a2a.serving import listen
from shared.errors import WabeError
from shared.settings import Settings


def report(store: RunStore, options: RunOptions, console: Console) -> Path | None:
    """Write the report of a run stored here, and print its path."""
    try:
        has_tasks = next(store.task_folders(), None) is not None
        with console.status("Writing the report"):
            page = _write_report(store) if has_tasks else None
    except WabeError as error:
        tell_problem(console, f"No report: {error}", style="")
        return None
    console.out(
        f"Report:  {page}" if page else "No report: the judge keeps its trajectories elsewhere.", highlight=False
    )
    if page and options.open_report:
        open_page(page)
    return page


def _write_report(store: RunStore) -> Path:
    """The report; for a sealed task set, in a CI service, the one without its tasks."""
    is_ci = Settings.from_environ().is_ci
    return make_public_report(store) if is_ci and store.is_sealed else make_report([store], contents=not is_ci)


async def linger(plan: Plan, console: Console) -> None:
    """Serve the run where its live page was, until a signal, which then only ends this."""
    endpoint = plan.members[-1].endpoint
    if plan.members[-1].cmd is None or plan.store is None:
        console.out(
            f"The judge at {endpoint} was not started by this command; its live page stays up.", highlight=False
        )
        return
    place = urlsplit(endpoint)

    def on_ready(address: str) -> None:
        console.out(f"The live page stays at {address} until Ctrl-C.", highlight=False)

    try:
        sock = listen(place.hostname or "127.0.0.1", place.port or 80)
        await serve_run(plan.store, sock, on_ready, takes_signals=False)
    except asyncio.CancelledError:
        pass
    except WabeError as error:
        # The run's exit code remains.
        tell_problem(console, f"No live page: {error}", style="")
