"""`wabe serve`: the judge as an A2A server."""

from typing import Annotated

import typer

from judge.commands import AnyHost, LogForm, OutputDir, Verbose
from judge.scenario.models import MAX_TASKS
from judge.server.app import serve_judge
from judge.server.limits import ServiceLimits
from judge.store.layout import output_folder
from shared.logs import configure_logging
from shared.settings import Settings

_COST = "What the judge model may cost, over all assessments; a request's max_judge_cost_usd is clamped to it."
_TOKENS = "How many tokens the judge model may use, over all assessments; max_judge_tokens is clamped to it."
_PUBLIC = "Show the live page to other machines too, without WABE_AUTH_TOKEN."


def serve(
    host: AnyHost = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 9009,
    card_url: Annotated[str | None, typer.Option(help="Address in the agent card (behind a proxy).")] = None,
    output_dir: OutputDir = None,
    max_assessments: Annotated[int, typer.Option(min=1, help="How many assessments at once.")] = 4,
    max_tasks: Annotated[int, typer.Option(min=1, help="How many tasks in one request.")] = MAX_TASKS,
    max_parallel: Annotated[int, typer.Option(min=1, help="How many tasks at once, over all assessments.")] = 64,
    max_steps: Annotated[int | None, typer.Option(min=1, help="Reject a larger max_steps.")] = None,
    max_task_timeout: Annotated[float | None, typer.Option(min=1, help="Reject a longer task_timeout_s.")] = None,
    max_cost_usd: Annotated[float | None, typer.Option(min=0, help=_COST)] = None,
    max_tokens: Annotated[int | None, typer.Option(min=0, help=_TOKENS)] = None,
    allow_participant: Annotated[
        list[str] | None, typer.Option(help="Only connect to participants at this host[:port]; repeatable.")
    ] = None,
    no_ui: Annotated[bool, typer.Option("--no-ui", help="No live page at /.")] = False,
    public_live: Annotated[bool, typer.Option("--public-live", help=_PUBLIC)] = False,
    verbose: Verbose = False,
    log_format: LogForm = "text",
) -> None:
    """Serve the judge over A2A."""
    settings = Settings.from_environ()
    configure_logging(verbose=verbose, secrets=settings.secrets, form=log_format)
    serve_judge(
        settings,
        host=host,
        port=port,
        card_url=card_url,
        output_dir=output_folder(output_dir, settings),
        limits=ServiceLimits(
            max_assessments=max_assessments,
            max_tasks=max_tasks,
            max_parallel=max_parallel,
            max_steps=max_steps,
            max_task_timeout_s=max_task_timeout,
            max_cost_usd=max_cost_usd,
            max_tokens=max_tokens,
            allowed_participants=tuple(allow_participant or ()),
        ),
        ui=not no_ui,
        public_live=public_live,
    )
