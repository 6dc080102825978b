"""The commands that measure, and their options: ``tamis bench …``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tamis.cli.terminal import exit_codes, require_extra

Output = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Where the result files are.")
]
Resume = Annotated[
    bool,
    typer.Option("--resume", metavar="", help="Keep what has a result file at this scale."),
]
Report = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write the results as Markdown, with plots beside it."),
]
OneOutput = Annotated[
    Path, typer.Option("--output", "-o", metavar="DIR", help="Where the result file goes.")
]
PartReport = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write the results into the measured part of this page."),
]
Json = Annotated[bool, typer.Option("--json", metavar="", help="Print one JSON object instead.")]

bench = typer.Typer(name="bench", help="Measure Tamis on this machine.", no_args_is_help=True)


@bench.callback()
def _bench() -> None:
    pass


@bench.command("all")
def all_parts(
    scale: Annotated[
        float, typer.Option(help="Share of the subscriptions, of events and of requests.")
    ] = 0.01,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART,…",
            help="engine, algorithms, events, store, delivery, startup, spark; none measures "
            "nothing new.",
        ),
    ] = None,
    output: Output = Path("build/bench"),
    resume: Resume = False,
    report: Report = None,
    json: Json = False,
) -> None:
    """Measure the headline figures of all parts: about half an hour at --scale 1.

    Cells of the other benchmarks: the engine, the papers' algorithms, space and time, the service
    and its store (on PostgreSQL too where a server is found), delivery, start-up and Spark. A cell
    that fails is told at the end, and does not keep the others from being measured.

    [bold]Example[/bold]

    [cyan]tamis bench all --scale 0.01 --only engine,startup[/cyan]

    [cyan]tamis bench all --scale 1 --resume --report docs/performance.md[/cyan]
    """
    with exit_codes():
        require_extra("bench", "matplotlib", "rtree", "duckdb", "polars")
        require_extra("spark", "pyspark")
        require_extra("service", "sqlalchemy", "fastapi", "httpx")
        from tamis.cli.bench_all import AllBench

        is_whole = AllBench(scale, only or (), output, resume, report, json).run()
    raise typer.Exit(0 if is_whole else 1)


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
    output: Output = Path("build/bench/engine"),
    sweeps: Annotated[
        bool,
        typer.Option("--sweeps", metavar="", help="Also vary N, M, width and skew, for the plots."),
    ] = False,
    largest: Annotated[
        int, typer.Option(metavar="N", help="The most subscriptions of the sweep over N.")
    ] = 4_000_000,
    resume: Resume = False,
    report: Report = None,
    json: Json = False,
) -> None:
    """Measure the index against a scan, NumPy, rtree, DuckDB and Polars, and against its aims.

    Results are compared with the scan before anything is timed. Each cell is a JSON file in
    --output with the machine and the versions; a run that was stopped goes on with --resume.

    [bold]Example[/bold]

    [cyan]tamis bench engine --workload W1 --scale 0.1[/cyan]

    [cyan]tamis bench engine --scale 1 --sweeps --report docs/engine.md[/cyan]
    """
    with exit_codes():
        from tamis.cli.bench import EngineBench

        EngineBench(
            workload or (), scale, only or (), output, sweeps, largest, resume, report, json
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
    output: Output = Path("build/bench/events"),
    resume: Resume = False,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the results into its measured part, with plots beside it."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Measure space and time: subscriptions that move, events that stay valid.

    Matching of events and of subscriptions, insertion, expiry, moves, memory, and what polygons
    cost the others; beside rtree, MO-Tree and BEQ-Tree, and against the aims. Results are compared
    with the oracle or a scan before anything is timed. Each cell is a JSON file in --output with
    the machine and the versions; a run that was stopped goes on with --resume.

    [bold]Example[/bold]

    [cyan]tamis bench events --scale 0.1 --only matching,move[/cyan]

    [cyan]tamis bench events --scale 1 --sizes 250k,2M,5M --report docs/space-and-time.md[/cyan]
    """
    with exit_codes():
        require_extra("bench", "rtree")
        from tamis.cli.bench_events import EventsBench

        EventsBench(scale, only or (), sizes or (), output, resume, report, json).run()


@bench.command()
def spark(
    scale: Annotated[float, typer.Option(help="Share of the subscriptions: 1 is a million.")] = 0.1,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="CELL,…", help="parquet, join, stream; all if not said."),
    ] = None,
    minutes: Annotated[float, typer.Option(help="How long the stream is watched.")] = 1.0,
    output: Output = Path("build/bench/spark"),
    resume: Resume = False,
    json: Json = False,
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

        SparkBench(scale, only or (), minutes, output, resume, json).run()


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
        typer.Option(
            metavar="CELL,…", help="requests, import, upload, deliveries; all if not said."
        ),
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="postgresql://user@host/name, an empty one; SQLite if not said."
        ),
    ] = None,
    output: Output = Path("build/bench/service"),
    resume: Resume = False,
    report: PartReport = None,
    json: Json = False,
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

        ServiceBench(scale, only or (), database, output, resume, report, json).run()


@bench.command()
def soak(
    minutes: Annotated[float, typer.Option(help="How long there is load.")] = 60.0,
    rate: Annotated[float, typer.Option(metavar="N", help="Events a second.")] = 40.0,
    output: OneOutput = Path("build/bench/soak"),
    folder: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="A new folder for data and logs that is not removed."),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the result as Markdown, with a picture beside it."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Run service, pipeline and sender under load, kill some of them, and compare what was told.

    In the second half nothing is killed: memory, open files and disk must stay as they are. The
    exit code is 1 if a match was lost, told twice, or told wrongly.

    [bold]Example[/bold]

    [cyan]tamis bench soak --minutes 10[/cyan]

    [cyan]tamis bench soak --minutes 60 --report docs/soak.md[/cyan]
    """
    with exit_codes():
        require_extra("service", "sqlalchemy", "fastapi", "httpx")
        require_extra("spark", "pyspark")
        from tamis.cli.bench_soak import SoakBench

        SoakBench(minutes, rate, output, folder, report, json).run()


@bench.command()
def walk(
    scale: Annotated[float, typer.Option(help="Share of the subscriptions: 1 is a million.")] = 0.1,
    output: OneOutput = Path("build/bench/walk"),
    report: PartReport = None,
    json: Json = False,
) -> None:
    """Measure the walk of an event from the request to the webhook, stage by stage.

    A service with its pipeline and its sender, as `tamis serve` starts them; events and
    subscriptions pass one at a time. Then what each stage costs alone.

    [bold]Example[/bold]

    [cyan]tamis bench walk --scale 0.01[/cyan]

    [cyan]tamis bench walk --scale 1 --report docs/architecture.md[/cyan]
    """
    with exit_codes():
        require_extra("service", "sqlalchemy", "fastapi", "httpx")
        require_extra("spark", "pyspark")
        from tamis.cli.bench_walk import WalkBench

        WalkBench(scale, output, report, json).run()


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
    resume: Resume = False,
    headline: Annotated[
        bool,
        typer.Option(
            "--headline",
            metavar="",
            help="The main figures with few points: about ten minutes a paper at full scale.",
        ),
    ] = False,
    output: Output = Path("build/bench/reproduce"),
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
