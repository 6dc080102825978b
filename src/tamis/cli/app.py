"""The commands and their options. What a command needs is imported when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tamis.cli.benches import bench
from tamis.cli.service import add_service_commands
from tamis.cli.terminal import BadInput, exit_codes, require_extra, run_app

app = typer.Typer(
    name="tamis",
    help="Sift a stream of events through saved subscriptions.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Run the command line."""
    sys.exit(run_app(app))


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"tamis {version('tamis')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            metavar="",
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    pass


@app.command()
def match(
    subscriptions: Annotated[
        str,
        typer.Option(
            "--subscriptions", "-s", metavar="FILE", help="JSON lines or Parquet; - is stdin."
        ),
    ],
    events: Annotated[
        str,
        typer.Option(
            "--events", "-e", metavar="FILE", help="JSON lines, CSV or Parquet; - is stdin."
        ),
    ],
    output: Annotated[
        str,
        typer.Option("--output", "-o", metavar="FILE", help="JSON lines, Parquet or - (stdout)."),
    ] = "-",
    skip_bad: Annotated[
        bool,
        typer.Option("--skip-bad", metavar="", help="Report lines that cannot be read and go on."),
    ] = False,
    rejects: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write those lines here as JSON lines; implies --skip-bad."
        ),
    ] = None,
    json: Annotated[
        bool,
        typer.Option(
            "--json", metavar="", help="End with the summary as one JSON object on stderr."
        ),
    ] = False,
) -> None:
    """Tell which subscriptions each event satisfies.

    Each match is a line with event_id, subscription_id and priority.

    Events are read as they arrive, so a pipe may go on for ever.

    [bold]Example[/bold]

    [cyan]tamis match --subscriptions subs.jsonl --events ads.csv -o matches.parquet[/cyan]

    [cyan]tail -F ads.jsonl | tamis match -s subs.jsonl -e - --skip-bad[/cyan]
    """  # fmt: skip
    with exit_codes():
        from tamis.cli.matching import MatchJob

        MatchJob(subscriptions, events, output, skip_bad, rejects, json).run()


@app.command()
def explain(
    filter: Annotated[
        str, typer.Argument(metavar="FILTER", help="The filter, unless --id names a saved one.")
    ] = "",
    event: Annotated[
        str,
        typer.Option("--event", "-e", metavar="JSON|@FILE", help="The event; @- reads stdin."),
    ] = "",
    subscriptions: Annotated[
        str,
        typer.Option("--subscriptions", "-s", metavar="FILE", help="Where the saved filter is."),
    ] = "",
    id: Annotated[str, typer.Option(metavar="ID", help="The id of the saved subscription.")] = "",
    spelling: Annotated[
        str,
        typer.Option(
            metavar="sql|json|query", help="How FILTER is written; sql or json if not said."
        ),
    ] = "",
    json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print the tree as a JSON object.")
    ] = False,
) -> None:
    """Tell why a filter accepts an event, or does not, clause by clause.

    The exit code is 0 if it accepts the event, 1 if it does not, 2 on bad input.

    [bold]Example[/bold]

    [cyan]tamis explain "price < 3300 AND brand = 'Huawei'" --event '{"price": 3400}'[/cyan]

    [cyan]tamis explain --subscriptions subs.jsonl --id s1 --event @event.json[/cyan]
    """  # fmt: skip
    with exit_codes():
        from tamis.cli.explaining import run_explain

        held = run_explain(filter, event, subscriptions, id, spelling, json)
    raise typer.Exit(0 if held else 1)


@app.command()
def run(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The settings of the pipeline, TOML.")
    ],
    set: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated."),
    ] = None,
    once: Annotated[
        bool,
        typer.Option("--once", metavar="", help="Do what there is to do, then end."),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", metavar="", help="End with the summary as one JSON object.")
    ] = False,
    until_eof: Annotated[
        bool,
        typer.Option(
            "--until-eof",
            metavar="",
            help="Stop at the end of standard input too, as when whoever holds it open has died.",
        ),
    ] = False,
) -> None:
    """Run the pipeline on Spark: match events, tell subscribers when it is due.

    It runs until it is stopped (Ctrl-C, SIGTERM), and goes on from there when started again.

    [bold]Example[/bold]

    [cyan]tamis run pipeline.toml --set matching.mode=sharded[/cyan]

    [cyan]tamis run pipeline.toml --once --json[/cyan]
    """
    with exit_codes():
        require_extra("spark", "pyspark", "pydantic", "prometheus_client")
        from tamis.cli.run import RunJob

        RunJob(file, set or (), once, json, until_eof).run()


@app.command()
def demo(
    n_searches: Annotated[
        int | None,
        typer.Option(
            "--subscriptions",
            metavar="N",
            min=1,
            help="How many saved searches to generate; 100,000, and 2,000 customers of a city.",
        ),
    ] = None,
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="S",
            min=1,
            help="How long ads are posted, at least: 15. How long the city lives: 60.",
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Another seed makes other searches and ads.")
    ] = 2016,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", metavar="", help="Then serve the same searches, with more ads, until Ctrl-C."
        ),
    ] = False,
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Where --keep serves them on this machine.")
    ] = 8080,
    city: Annotated[bool, typer.Option("--city", metavar="", help="Show a city instead.")] = False,
    picture: Annotated[
        Path, typer.Option("--map", metavar="FILE", help="Where the map of the city goes.")
    ] = Path("tamis-city.png"),
    json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON object instead.")
    ] = False,
) -> None:
    """Show the car-ad example of the paper, then a market of ads through the pipeline on Spark.

    Ads are posted until a full minute has passed, when digests are due, unless that is far off.

    With --city: customers who walk about and promotions that expire, for a minute, and a map.

    [bold]Example[/bold]

    [cyan]tamis demo --subscriptions 20000 --seconds 10[/cyan]

    [cyan]tamis demo --keep[/cyan]

    [cyan]tamis demo --city --map city.png[/cyan]
    """
    with exit_codes():
        require_extra("spark", "pyspark", "pydantic", "prometheus_client")
        if keep:
            require_extra("service", "fastapi", "uvicorn", "sqlalchemy", "structlog", "httpx")
        if city and keep:
            raise BadInput("--keep is for the market; leave out --city")
        if city:
            require_extra("bench", "matplotlib")
            from tamis.cli.city_demo import run_city

            run_city(n_searches or 2_000, seconds or 60, seed, json, picture)
            return
        from tamis.cli.demo import run_demo

        run_demo(n_searches or 100_000, seconds or 15, seed, json, port if keep else None)


@app.command()
def doctor(
    database: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Look at this database too, as given to tamis serve."),
    ] = None,
    pipeline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Look at the settings of this pipeline too, TOML."),
    ] = None,
    spark: Annotated[
        bool, typer.Option("--spark", metavar="", help="Start Spark too; takes some ten seconds.")
    ] = False,
    host: Annotated[str, typer.Option(help="Where the service is to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535)] = 8080,
    data: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the service is to keep its data.")
    ] = Path("tamis-data"),
    json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON object instead.")
    ] = False,
) -> None:
    """Tell what of the environment is missing or wrong, and what to do about it.

    The exit code is 0 if all that is needed is there, 1 if not.

    [bold]Example[/bold]

    [cyan]tamis doctor[/cyan]

    [cyan]tamis doctor --spark --pipeline pipeline.toml --json[/cyan]
    """
    with exit_codes():
        from tamis.cli.doctor import Subject, run_doctor

        is_well = run_doctor(Subject(data, host, port, database, pipeline, spark), json)
    raise typer.Exit(0 if is_well else 1)


@app.command("show")
def show_algorithm(
    algorithm: Annotated[
        str, typer.Argument(metavar="ALGORITHM", help="gem, rein, be_tree, tamis, …")
    ],
    event: Annotated[
        str, typer.Option(metavar="JSON", help='Values from 0 to 1, as in {"a": 0.3, "c": null}.')
    ] = "{}",
    n_subscriptions: Annotated[
        int | None,
        typer.Option(
            "--subscriptions",
            min=1,
            max=1_000_000,
            show_default="what reads well",
            help="How many are made.",
        ),
    ] = None,
    n_attributes: Annotated[
        int | None,
        typer.Option("--attributes", show_default="what reads well", help="Named a, b, c, …"),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Other subscriptions for another seed.")] = 0,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="A .png or .svg file.")
    ] = Path("tamis-show.png"),
) -> None:
    """Draw how an algorithm matches one event: what it keeps, and what it looks at.

    Subscriptions are made for it. Attributes the event does not mention have values too; null
    leaves one out.

    [bold]Example[/bold]

    [cyan]tamis show gem --event '{"a": 0.3, "b": 0.7}' -o gem.png[/cyan]
    """
    with exit_codes():
        require_extra("bench", "matplotlib")
        from tamis.cli.showing import show

        show(algorithm, event, n_subscriptions, n_attributes, seed, output)


add_service_commands(app)

app.add_typer(bench)
