"""`wabe serve`: the judge as an A2A server."""

from pathlib import Path
from typing import Annotated

import typer

from judge.service_limits import ServiceLimits
from judge.store import output_folder
from shared.logs import configure_logging
from shared.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command()
    def serve(
        host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
        port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 9009,
        card_url: Annotated[
            str | None, typer.Option(help="Address that the agent card names (behind a proxy).")
        ] = None,
        output_dir: Annotated[Path | None, typer.Option(help="Where runs are kept.")] = None,
        max_assessments: Annotated[int, typer.Option(min=1, help="How many assessments at once.")] = 4,
        max_tasks: Annotated[int, typer.Option(min=1, help="How many tasks in one request.")] = 1000,
        allow_participant: Annotated[
            list[str] | None, typer.Option(help="Only dial participants at this host[:port]; may be given again.")
        ] = None,
        no_ui: Annotated[bool, typer.Option("--no-ui", help="No live page at /.")] = False,
        verbose: Annotated[bool, typer.Option("--verbose", help="Log more.")] = False,
    ) -> None:
        """Serve the judge over A2A."""
        # Late: no other command should wait for what the server is made of.
        from judge.serve import serve_judge

        settings = Settings.from_environ()
        configure_logging(
            verbose=verbose, secrets=(settings.google_api_key, settings.openai_api_key, settings.auth_token)
        )
        limits = ServiceLimits(
            max_assessments=max_assessments,
            max_tasks=max_tasks,
            allowed_participants=tuple(allow_participant or ()),
        )
        serve_judge(
            settings,
            host=host,
            port=port,
            card_url=card_url,
            output_dir=output_folder(output_dir, settings),
            limits=limits,
            ui=not no_ui,
        )
