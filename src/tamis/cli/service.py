"""The commands of the service and their options: ``serve``, ``send``, ``import`` and ``keys``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tamis.cli.terminal import exit_codes, require_extra

Database = Annotated[
    str,
    typer.Option(
        metavar="URL", help="Of the service: sqlite:///path or postgresql://user@host/name."
    ),
]
DEFAULT_DATABASE = "sqlite:///tamis-data/tamis.db"


def add_service_commands(app: typer.Typer) -> None:
    """Let an app know the commands of this module."""
    app.command()(serve)
    app.command()(send)
    app.command("import")(import_)
    app.add_typer(keys)


def serve(
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="sqlite:///path or postgresql://user@host/name; a file in --data if not said.",
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8080,
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the event log is, and the database.")
    ] = Path("tamis-data"),
    pipeline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The pipeline's settings; made in --data if not said."),
    ] = None,
    no_pipeline: Annotated[
        bool, typer.Option("--no-pipeline", metavar="", help="The pipeline runs elsewhere.")
    ] = False,
    sender: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The sender's settings: the mail server and so on."),
    ] = None,
    no_sender: Annotated[
        bool, typer.Option("--no-sender", metavar="", help="The sender runs elsewhere.")
    ] = False,
    kafka: Annotated[
        str | None,
        typer.Option(metavar="SERVERS/TOPIC", help="A topic for the events, instead of files."),
    ] = None,
) -> None:
    """Serve subscriptions, events and notifications over HTTP, with the pipeline beside it.

    It runs until it is stopped (Ctrl-C, SIGTERM). The first start prints a key for an admin.

    [bold]Example[/bold]

    [cyan]tamis serve[/cyan]

    [cyan]tamis serve --database postgresql://tamis@db/tamis --pipeline pipeline.toml[/cyan]
    """
    with exit_codes():
        require_extra("service", "fastapi", "uvicorn", "sqlalchemy", "structlog")
        from tamis.cli.serve import ServeJob

        ServeJob(
            data, database, host, port, pipeline, not no_pipeline, kafka, sender, not no_sender
        ).run()


def send(
    database: Database = DEFAULT_DATABASE,
    settings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The settings of the sender, TOML; see docs/delivery.md."
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", metavar="", help="Send what is due, then end.")
    ] = False,
) -> None:
    """Send notifications to webhooks, mail and chat services.

    Any number of these may run on one database. What is under way is finished when it is stopped
    (Ctrl-C, SIGTERM). The password of the mail server is read from TAMIS_MAIL_PASSWORD.

    [bold]Example[/bold]

    [cyan]tamis send --settings sender.toml[/cyan]

    [cyan]tamis send --database postgresql://tamis@db/tamis --once[/cyan]
    """
    with exit_codes():
        require_extra("service", "httpx", "aiosmtplib", "apprise", "standardwebhooks")
        from tamis.cli.sending import SendJob

        SendJob(database, settings, once).run()


def import_(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A JSON object a line; - is stdin."),
    ],
    database: Database = DEFAULT_DATABASE,
    owner: Annotated[str, typer.Option(help="Of those that do not say whose they are.")] = "admin",
    json: Annotated[
        bool, typer.Option("--json", metavar="", help="End with the summary as one JSON object.")
    ] = False,
) -> None:
    """Save many subscriptions in the database of a service; those that are there are replaced.

    [bold]Example[/bold]

    [cyan]tamis import subs.jsonl --owner zoe[/cyan]

    [cyan]tamis import subs.jsonl --database postgresql://tamis@db/tamis --json[/cyan]
    """
    with exit_codes():
        require_extra("service", "sqlalchemy", "alembic")
        from tamis.cli.importing import ImportJob

        ImportJob(file, database, owner, json).run()


keys = typer.Typer(name="keys", help="API keys of a service.", no_args_is_help=True)


@keys.command("create")
def create_key(
    owner: Annotated[str, typer.Argument(help="Whose subscriptions it sees and touches.")],
    scope: Annotated[
        list[str], typer.Option("--scope", help="subscriber, publisher or admin; may be repeated.")
    ],
    database: Database = DEFAULT_DATABASE,
    name: Annotated[str, typer.Option(help="A word to know it by.")] = "",
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", metavar="NAME=NUMBER", help="A limit of its own; may be repeated."),
    ] = None,
) -> None:
    """Make a key and print it; it is not kept and cannot be had again.

    [bold]Example[/bold]

    [cyan]tamis keys create zoe --scope subscriber --limit subscriptions=50[/cyan]
    """
    with exit_codes():
        require_extra("service", "sqlalchemy", "alembic")
        from tamis.cli.keys import create_key

        create_key(database, owner, scope, name, limit or ())


@keys.command("list")
def list_keys(
    database: Database = DEFAULT_DATABASE,
    json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print a JSON object a line instead.")
    ] = False,
) -> None:
    """List all keys, without their secrets.

    [bold]Example[/bold]

    [cyan]tamis keys list --json[/cyan]
    """
    with exit_codes():
        require_extra("service", "sqlalchemy", "alembic")
        from tamis.cli.keys import list_keys

        list_keys(database, json)


@keys.command("revoke")
def revoke_key(
    prefix: Annotated[str, typer.Argument(help="The part of the key that is shown.")],
    database: Database = DEFAULT_DATABASE,
) -> None:
    """Let a key do nothing any more; a running service notices within five seconds.

    [bold]Example[/bold]

    [cyan]tamis keys revoke 56a338de25[/cyan]
    """
    with exit_codes():
        require_extra("service", "sqlalchemy", "alembic")
        from tamis.cli.keys import revoke_key

        revoke_key(database, prefix)
