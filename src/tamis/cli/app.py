"""The commands and their options. What a command needs is imported when it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

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

        RunJob(file, set or (), once, json).run()


@app.command()
def send(
    database: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Where notifications wait: sqlite:///path or postgresql://…"
        ),
    ],
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

    [cyan]tamis send --database sqlite:///tamis.db --settings sender.toml[/cyan]
    """
    with exit_codes():
        require_extra("service", "httpx", "aiosmtplib", "apprise", "standardwebhooks")
        from tamis.cli.sending import SendJob

        SendJob(database, settings, once).run()


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

bench = typer.Typer(name="bench", help="Measure Tamis on this machine.", no_args_is_help=True)
app.add_typer(bench)


@bench.callback()
def _bench() -> None:
    pass


@bench.command()
def engine(
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", "-w", metavar="W1…W5", help="May be repeated; all if not said."),
    ] = None,
    scale: Annotated[
        float, typer.Option(help="Share of the subscriptions: 1 is a million (W3: half).")
    ] = 0.1,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CELL,…",
            help="match, batch, build, memory, numpy, rtree, duckdb, polars, priorities, files, "
            "changes, readers, first-use; none measures nothing new.",
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the result files are.")
    ] = Path("build/bench/engine"),
    sweeps: Annotated[
        bool, typer.Option("--sweeps", help="Also vary N, M, width and skew, for the plots.")
    ] = False,
    largest: Annotated[
        int, typer.Option(metavar="N", help="The most subscriptions of the sweep over N.")
    ] = 4_000_000,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again what has a result file.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the results as Markdown, with plots beside it."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Measure the index against a scan, NumPy, rtree, DuckDB and Polars, and against its aims.

    Results are compared with the scan before anything is timed. Each cell is a JSON file in
    --output with the machine and the versions; a run that was stopped goes on where it was.

    [bold]Example[/bold]

    [cyan]tamis bench engine --workload W1 --scale 0.1[/cyan]

    [cyan]tamis bench engine --scale 1 --sweeps --report docs/performance.md[/cyan]
    """
    with exit_codes():
        from tamis.cli.bench import EngineBench

        EngineBench(
            workload or (), scale, only or (), output, sweeps, largest, fresh, report, json
        ).run()


@bench.command()
def events(
    scale: Annotated[
        float, typer.Option(help="Share of the subscriptions and events: 1 is a million each.")
    ] = 0.1,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CELL,…",
            help="matching, polygon, move, subscriptions, insert, expiry, memory; all if not said.",
        ),
    ] = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option(metavar="N,…", help="Other sizes too, such as 500k,2M,5M; for the plots."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the result files are.")
    ] = Path("build/bench/events"),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again what has a result file.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the results into its measured part, with plots beside it."
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Measure space and time: subscriptions that move, events that stay valid.

    Matching of events and of subscriptions, insertion, expiry, moves, memory, and what polygons
    cost the others; beside rtree, MO-Tree and BEQ-Tree, and against the aims. Results are compared
    with the oracle or a scan before anything is timed. Each cell is a JSON file in --output with
    the machine and the versions; a run that was stopped goes on where it was.

    [bold]Example[/bold]

    [cyan]tamis bench events --scale 0.1 --only matching,move[/cyan]

    [cyan]tamis bench events --scale 1 --sizes 250k,2M,5M --report docs/space-and-time.md[/cyan]
    """
    with exit_codes():
        require_extra("bench", "rtree")
        from tamis.cli.bench_events import EventsBench

        EventsBench(scale, only or (), sizes or (), output, fresh, report, json).run()


@bench.command()
def spark(
    scale: Annotated[float, typer.Option(help="Share of the subscriptions: 1 is a million.")] = 0.1,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="CELL,…", help="parquet, join, stream; all if not said."),
    ] = None,
    minutes: Annotated[float, typer.Option(help="How long the stream is watched.")] = 1.0,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the result files are.")
    ] = Path("build/bench/spark"),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again what has a result file.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Measure matching on Spark: Parquet to Parquet, against a join, and as a stream.

    On two cores of this machine. The first is compared with twice what the index reaches alone
    on one core, the second with the join one would write without Tamis at a tenth of the
    subscriptions; the stream brings 2,000 events a second. Results are checked before they count.

    [bold]Example[/bold]

    [cyan]tamis bench spark --scale 0.1[/cyan]

    [cyan]tamis bench spark --scale 1 --only stream --minutes 10[/cyan]
    """
    with exit_codes():
        require_extra("spark", "pyspark")
        from tamis.cli.bench_spark import SparkBench

        SparkBench(scale, only or (), minutes, output, fresh, json).run()


@bench.command()
def service(
    scale: Annotated[
        float,
        typer.Option(
            help="Share of the imported subscriptions, of the time "
            "of requests and of the notifications: 1 is a million, a minute and 10,000."
        ),
    ] = 0.1,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="CELL,…", help="requests, import, deliveries; all if not said."),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="postgresql://user@host/name, an empty one; SQLite if not said."
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the result files are.")
    ] = Path("build/bench/service"),
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Measure again what has a result file.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")] = False,
) -> None:
    """Measure the service: 300 requests a second over HTTP, an import, webhooks that are sent.

    Each is a process of its own on this machine. What was saved, imported and delivered is
    checked before it counts.

    [bold]Example[/bold]

    [cyan]tamis bench service --only requests[/cyan]

    [cyan]tamis bench service --only import --database postgresql://me@localhost/empty[/cyan]
    """
    with exit_codes():
        require_extra("service", "sqlalchemy", "fastapi", "httpx")
        from tamis.cli.bench_service import ServiceBench

        ServiceBench(scale, only or (), database, output, fresh, json).run()


@bench.command()
def reproduce(
    papers: Annotated[
        list[str],
        typer.Argument(
            metavar="PAPER…", help="gem, dexin, pri-rein, mo-tree, yandex, cpp, or all of them."
        ),
    ],
    figure: Annotated[
        str | None, typer.Option(metavar="N", help="Only the figure of this number.")
    ] = None,
    scale: Annotated[
        float, typer.Option(help="Share of the paper's subscriptions and events.")
    ] = 0.1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep what has a result file at this scale.")
    ] = False,
    headline: Annotated[
        bool,
        typer.Option(
            "--headline",
            help="The main figures with few points: about ten minutes a paper at full scale.",
        ),
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="Where the result files are.")
    ] = Path("build/bench/reproduce"),
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write all results there are as Markdown, with pictures beside it."
        ),
    ] = None,
) -> None:
    """Run the experiments of the papers again, and say which of their claims hold.

    Results are compared with a scan before anything is timed. Each cell, an algorithm at one
    point, is a JSON file in --output; a run that was stopped goes on with --resume.

    [bold]Example[/bold]

    [cyan]tamis bench reproduce gem --figure 4 --scale 0.01[/cyan]

    [cyan]tamis bench reproduce all --headline --scale 1 --report docs/reproduction.md[/cyan]
    """
    with exit_codes():
        from tamis.cli.reproduce import ReproduceBench

        ReproduceBench(papers, figure, scale, resume, headline, output, report).run()
