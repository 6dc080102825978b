"""The command line: what it reads, writes and says, and its exit codes."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from tamis.bench.ads import generate_ads, generate_searches
from tamis.cli.app import app
from tamis.cli.terminal import run_app

SUBSCRIPTIONS = [
    {"id": "s1", "filter": "brand = 'Huawei' AND price < 3300", "priority": 0},
    {"id": "s2", "filter": {"attribute": "price", "op": "<", "value": 5000}, "priority": 7},
    {"id": "s3", "filter": "NOT price < 10"},
]
EVENTS: list[dict[str, Any]] = [
    {"id": "e1", "brand": "Huawei", "price": 3200},
    {"brand": "Honor", "price": 5},
    {"id": 7, "brand": "É"},
]
MATCHES = [
    ("e1", "s1", 0),
    ("e1", "s3", 5),
    ("e1", "s2", 7),
    ("2", "s2", 7),
    ("7", "s3", 5),
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a command in a directory with subs.jsonl and events.jsonl."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    write("subs.jsonl", SUBSCRIPTIONS)
    write("events.jsonl", EVENTS)
    runner = CliRunner()
    return lambda *args, **kwargs: runner.invoke(app, list(args), **kwargs)


def write(path: str, records: list[Any]) -> None:
    Path(path).write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in records))


def rows(text: str) -> list[tuple[Any, ...]]:
    return [tuple(json.loads(line).values()) for line in text.splitlines()]


MATCH = ("match", "--subscriptions", "subs.jsonl", "--events")


# -- match


def test_json_lines_to_stdout(run: Callable[..., Any]) -> None:
    done = run(*MATCH, "events.jsonl")
    assert (done.exit_code, done.stderr) == (0, "")
    assert rows(done.stdout) == MATCHES
    first = json.loads(done.stdout.splitlines()[0])
    assert list(first) == ["event_id", "subscription_id", "priority"]


def test_events_from_stdin(run: Callable[..., Any]) -> None:
    done = run(*MATCH, "-", input=Path("events.jsonl").read_bytes())
    assert rows(done.stdout) == MATCHES


def test_subscriptions_from_stdin(run: Callable[..., Any]) -> None:
    text = Path("subs.jsonl").read_bytes()
    done = run("match", "-s", "-", "-e", "events.jsonl", input=text)
    assert rows(done.stdout) == MATCHES


def test_output_to_a_file_of_json_lines(run: Callable[..., Any]) -> None:
    done = run(*MATCH, "events.jsonl", "-o", "out.jsonl")
    assert (done.exit_code, done.stdout) == (0, "")
    assert rows(Path("out.jsonl").read_text()) == MATCHES


def test_output_to_parquet(run: Callable[..., Any]) -> None:
    done = run(*MATCH, "events.jsonl", "-o", "out.parquet")
    assert (done.exit_code, done.stdout) == (0, "")
    table = pq.read_table("out.parquet")
    assert [tuple(row.values()) for row in table.to_pylist()] == MATCHES
    assert table.schema.types == [pa.string(), pa.string(), pa.int8()]
    assert sorted(p.name for p in Path().iterdir()) == ["events.jsonl", "out.parquet", "subs.jsonl"]


def test_parquet_without_matches_is_a_table_without_rows(run: Callable[..., Any]) -> None:
    write("events.jsonl", [])
    run(*MATCH, "events.jsonl", "-o", "out.parquet")
    assert pq.read_table("out.parquet").num_rows == 0


def test_csv_numbers_stay_text_and_empty_cells_are_missing(run: Callable[..., Any]) -> None:
    Path("events.csv").write_text(
        '\ufeffid,brand,price\ne1,Huawei,3200\n,"Ho\nnor",5\n\nx,É,\n', encoding="utf-8"
    )
    done = run(*MATCH, "events.csv")
    assert (done.exit_code, done.stderr) == (0, "")
    assert rows(done.stdout) == [*MATCHES[:3], ("4", "s2", 7), ("x", "s3", 5)]


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("id,a\ne1\n", "line 2", "1 cells in a table of 2 columns"),
        ("id,a\ne0,1\ne1,1,2\n", "line 3", "3 cells"),
        ('id,a\ne1,"x"y\n', "line 2", "not CSV"),
        ('id,a\ne1,"x\n', "line 2", "not CSV"),
        ("a,a\n1,2\n", "line 1", "two columns are named 'a'"),
        ("a,\n1,2\n", "line 1", "no name"),
        ("id,\udcff\n1,2\n", "line 1", "not UTF-8 in cell 2"),
        ("id,a\n1,2\n1,\udcff\n", "line 3", "not UTF-8 in cell 2"),
    ],
)
def test_bad_csv(run: Callable[..., Any], text: str, place: str, said: str) -> None:
    Path("events.csv").write_text(text, errors="surrogateescape")
    done = run(*MATCH, "events.csv")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"error: events.csv, {place}")
    assert said in done.stderr


def test_csv_goes_on_after_a_bad_row(run: Callable[..., Any]) -> None:
    Path("events.csv").write_bytes(b'id,price\ne1,"x"y\ne2\ne5,\xff\ne3,4\n')
    done = run(*MATCH, "events.csv", "--skip-bad")
    assert rows(done.stdout) == [("e3", "s2", 7)]
    assert done.stderr.count("skipped: events.csv") == 3


def test_parquet_events_and_subscriptions(run: Callable[..., Any]) -> None:
    filters = [
        f if isinstance(f, str) else json.dumps(f) for f in (s["filter"] for s in SUBSCRIPTIONS)
    ]
    ids = [s["id"] for s in SUBSCRIPTIONS]
    table = {"id": ids, "filter": filters, "priority": [0, 7, None], "owner": ["", None, "me"]}
    pq.write_table(pa.table(table), "subs.parquet")
    events = {"brand": ["Huawei", "Honor", "É"], "price": [3200, 5, None]}
    for name in ("id", "event_id"):
        pq.write_table(pa.table({name: ["e1", None, "7"], **events}), "events.parquet")
        done = run("match", "-s", "subs.parquet", "-e", "events.parquet")
        assert (done.exit_code, done.stderr) == (0, "")
        assert rows(done.stdout) == MATCHES
    pq.write_table(pa.table(events), "events.parquet")
    done = run("match", "-s", "subs.parquet", "-e", "events.parquet")
    assert [row[0] for row in rows(done.stdout)] == ["1", "1", "1", "2", "3"]


def test_a_bad_row_of_parquet_is_named(run: Callable[..., Any]) -> None:
    ranges = pa.array([{"low": 1, "high": 2}, {"low": 2, "high": 1}, {"low": 0, "high": 9}])
    pq.write_table(pa.table({"id": [1, 2, 3], "price": ranges}), "events.parquet")
    done = run(*MATCH, "events.parquet")
    assert done.exit_code == 2
    assert "events.parquet, row 2: " in done.stderr
    done = run(*MATCH, "events.parquet", "--skip-bad")
    assert {row[0] for row in rows(done.stdout)} == {"1", "3"}


def test_moments_no_timestamp_can_be_are_bad_rows_of_parquet(run: Callable[..., Any]) -> None:
    moments = pa.array([0, 10**18, 1]).cast(pa.timestamp("us"))
    for table in ({"id": [1, 2, 3], "t": moments}, {"event_id": moments}):
        pq.write_table(pa.table({**table, "price": [1, 1, 1]}), "events.parquet")
        done = run(*MATCH, "events.parquet")
        assert done.exit_code == 2
        assert done.stderr.startswith("error: events.parquet, row 2: ")
        assert "outside the years 1 to 9999" in done.stderr
        done = run(*MATCH, "events.parquet", "--skip-bad")
        assert (done.exit_code, len(rows(done.stdout))) == (0, 2)
    pq.write_table(pa.table({"id": ["s", "t", "u"], "filter": ["price < 5"] * 3, "x": moments}),
                   "subs.parquet")  # fmt: skip
    done = run("match", "-s", "subs.parquet", "-e", "events.jsonl")
    assert done.exit_code == 2
    assert "subs.parquet, row 1: " in done.stderr
    event = ("--event", '{"price": 3}')
    done = run("explain", "--subscriptions", "subs.parquet", "--id", "u", *event)
    assert done.exit_code == 2
    assert "subs.parquet, row 2: " in done.stderr


def test_parquet_subscriptions_have_a_location_as_events_do(run: Callable[..., Any]) -> None:
    place = pa.array([{"lon": 1.0, "lat": 2.0}, None])
    table = {"id": ["near", "any"], "filter": ["TRUE", "TRUE"], "location": place,
             "radius_m": [5.0, None]}  # fmt: skip
    pq.write_table(pa.table(table), "subs.parquet")
    points = pa.array([{"lon": 1.0, "lat": 2.0}, {"lon": 3.0, "lat": 2.0}])
    pq.write_table(pa.table({"id": ["a", "b"], "location": points}), "events.parquet")
    done = run("match", "-s", "subs.parquet", "-e", "events.parquet")
    assert {row[:2] for row in rows(done.stdout)} == {("a", "near"), ("a", "any"), ("b", "any")}


def test_more_events_than_one_chunk(run: Callable[..., Any]) -> None:
    write("events.jsonl", [{"id": str(n), "price": n % 20} for n in range(2_500)])
    done = run(*MATCH, "events.jsonl", "-o", "out.parquet", "--json")
    table = pq.read_table("out.parquet").to_pylist()
    told = [row["event_id"] for row in table if row["subscription_id"] == "s2"]
    assert told == [str(n) for n in range(2_500)]
    summary = json.loads(done.stderr)
    assert (summary["events"], summary["matches"]) == (2_500, 2_500 + 1_250)
    assert (summary["subscriptions"], summary["events_matched"], summary["rejected"]) == (
        3,
        2_500,
        0,
    )


# -- bad input


def test_a_bad_subscription_stops_the_run_with_a_caret(
    run: Callable[..., Any],
) -> None:
    write("subs.jsonl", [SUBSCRIPTIONS[0], {"id": "s9", "filter": "price <"}])
    Path("out.jsonl").write_text("kept")
    done = run(*MATCH, "events.jsonl", "-o", "out.jsonl")
    assert done.exit_code == 2
    lines = done.stderr.splitlines()
    assert lines[0].startswith("error: subs.jsonl, line 2: subscription 's9': ")
    assert lines[1].strip() == "price <"
    assert lines[2].strip() == "^"
    assert lines[2].index("^") == lines[1].index("<")
    assert "Traceback" not in done.stderr
    assert Path("out.jsonl").read_text() == "kept"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "not JSON"),
        (b"[1]", "JSON object"),
        (b'{"id": "", "a": 1}', "non-empty"),
        (b'{"a": 99999999999999999999}', "int64"),
        (b'{"a": "\\ud800"}', "surrogate"),
        (b'{"id": "\\ud800"}', "surrogate"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": {"$range": [2, 1]}}', "empty range"),
        (b'{"specversion": "0.3", "id": "x"}', "CloudEvents"),
    ],
)
def test_a_bad_event_stops_the_run(run: Callable[..., Any], line: bytes, said: str) -> None:
    Path("events.jsonl").write_bytes(b'{"id": "e1", "price": 5}\n\n' + line + b"\n")
    done = run(*MATCH, "events.jsonl")
    assert done.exit_code == 2
    assert done.stderr.startswith("error: events.jsonl, line 3: ")
    assert said in done.stderr


def test_skip_bad_reports_and_goes_on(run: Callable[..., Any]) -> None:
    subscriptions = [{"id": "x"}, *SUBSCRIPTIONS, {"id": "s1", "filter": "TRUE"}]
    too_complex = " AND ".join(f"(a{n} = 1 OR b{n} = 2)" for n in range(11))
    write("subs.jsonl", [*subscriptions, {"id": "y", "filter": too_complex}])
    Path("events.jsonl").write_text(Path("events.jsonl").read_text() + "nonsense\n")
    done = run(*MATCH, "events.jsonl", "--skip-bad", "--json")
    assert done.exit_code == 0
    assert rows(done.stdout) == MATCHES
    *skipped, summary = done.stderr.splitlines()
    assert [line.split(": ")[1] for line in skipped] == [
        "subs.jsonl, line 1", "subs.jsonl, line 5", "subs.jsonl, line 6", "events.jsonl, line 4",
    ]  # fmt: skip
    assert "taken by line 2" in skipped[1]
    assert json.loads(summary)["rejected"] == 4


def test_rejects_are_json_lines(run: Callable[..., Any]) -> None:
    write("subs.jsonl", [*SUBSCRIPTIONS, {"id": "x", "filter": "a=1&b=2"}])
    done = run(*MATCH, "events.jsonl", "--rejects", "rejects.jsonl")
    assert (done.exit_code, done.stderr) == (0, "")
    (reject,) = map(json.loads, Path("rejects.jsonl").read_text().splitlines())
    assert (reject["file"], reject["line"]) == ("subs.jsonl", 4)
    assert 'spelling="query"' in reject["error"]


def test_the_last_line_needs_no_end_and_windows_ends_are_fine(run: Callable[..., Any]) -> None:
    Path("events.jsonl").write_bytes(b'\xef\xbb\xbf{"price": 5}\r\n\r\n{"price": 6}')
    done = run(*MATCH, "events.jsonl")
    assert [row[0] for row in rows(done.stdout)] == ["1", "3"]


def test_an_endless_line_is_refused(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tamis.cli.reading.MAX_LINE_BYTES", 1000)
    Path("events.jsonl").write_text('{"a": "' + "x" * 5000)
    done = run(*MATCH, "events.jsonl")
    assert done.exit_code == 2
    assert "line 1 is longer than 1,000 bytes" in done.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("-s", "-", "-e", "-"), "only one of"),
        (("-s", "subs.jsonl", "-e", "nothing.jsonl"), "nothing.jsonl: No such file"),
        (("-s", "nothing.parquet", "-e", "events.jsonl"), "nothing.parquet: No such file"),
        (("-s", "subs.csv", "-e", "events.jsonl"), "not from CSV"),
        (("-s", ".", "-e", "events.jsonl"), "Is a directory"),
        (("-s", "subs.jsonl", "-e", "events.jsonl", "-o", "no/dir.jsonl"), "No such file"),
        (("-s", "subs.jsonl", "-e", "events.jsonl", "-o", "no/dir.parquet"), "no such directory"),
        (("-s", "subs.jsonl", "-e", "events.jsonl", "-o", "out.csv"), "not as CSV"),
        (("-s", "subs.jsonl", "-e", "events.jsonl", "-o", "./events.jsonl"), "is read by this run"),
        (("-s", "subs.jsonl", "-e", "events.jsonl", "--rejects", "subs.jsonl"), "is read by"),
        (("-s", "subs.jsonl", "-e", "events.jsonl", "-o", "x", "--rejects", "x"), "the same file"),
        (("-s", "subs.jsonl", "-e", "events.jsonl", "-o", "x", "--rejects", "link"), "the same"),
        (("-s", "subs.jsonl", "-e", "events.jsonl", "-o", "x", "--rejects", "a/../x"), "the same"),
        (("-s", "subs.jsonl", "-e", "events.jsonl", "-o", "a.parquet"), "a.parquet: is a dir"),
        (("-s", "subs.jsonl", "-e", "text.parquet"), "cannot be read as Parquet"),
    ],
)
def test_what_cannot_be_used_is_said(
    run: Callable[..., Any], args: tuple[str, ...], said: str
) -> None:
    Path("text.parquet").write_text("this is text")
    Path("subs.csv").touch()
    Path("a").mkdir()
    Path("a.parquet").mkdir()
    Path("link").symlink_to("x")
    before = Path("events.jsonl").read_text()
    done = run("match", *args)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert Path("events.jsonl").read_text() == before


def test_a_missing_file_leaves_the_output_as_it_was(run: Callable[..., Any]) -> None:
    Path("out.jsonl").write_text("old")
    done = run(*MATCH, "nothing.jsonl", "-o", "out.jsonl")
    assert (done.exit_code, Path("out.jsonl").read_text()) == (2, "old")


def test_what_comes_before_a_bad_line_is_answered(run: Callable[..., Any]) -> None:
    Path("events.jsonl").write_text('{"id": "a", "price": 1}\n{"id":\n{"id": "c", "price": 1}\n')
    done = run(*MATCH, "events.jsonl")
    assert done.exit_code == 2
    assert "events.jsonl, line 2: " in done.stderr
    assert [row[0] for row in rows(done.stdout)] == ["a"]
    Path("events.jsonl").write_bytes(b'{"id": "a", "price": 1}\n' + b" " * (17 * 2**20))
    done = run(*MATCH, "events.jsonl")
    assert (done.exit_code, [row[0] for row in rows(done.stdout)]) == (2, ["a"])


def test_a_run_that_fails_leaves_no_parquet(run: Callable[..., Any]) -> None:
    Path("out.parquet").write_text("old")
    Path("events.jsonl").write_text('{"price": 5}\nnonsense\n')
    assert run(*MATCH, "events.jsonl", "-o", "out.parquet").exit_code == 2
    assert Path("out.parquet").read_text() == "old"
    assert sorted(p.name for p in Path().iterdir()) == ["events.jsonl", "out.parquet", "subs.jsonl"]


# -- explain


def test_explain_a_filter(run: Callable[..., Any]) -> None:
    done = run("explain", "price < 3300 AND brand = 'Huawei'", "--event", '{"price": 3400}')
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "✗ not all of 2 hold",
        "  ✗ price = 3400 is not < 3300",
        "  ✗ no attribute 'brand'",
    ]


def test_explain_a_saved_subscription_and_an_event_in_a_file(run: Callable[..., Any]) -> None:
    Path("event.json").write_text(json.dumps(EVENTS[0], indent=1))
    done = run("explain", "-s", "subs.jsonl", "--id", "s1", "--event", "@event.json", "--json")
    assert done.exit_code == 0
    told = json.loads(done.stdout)
    assert told["held"] is True
    assert len(told["parts"]) == 2


def test_explain_reads_the_event_from_stdin(run: Callable[..., Any]) -> None:
    assert run("explain", "a = 1", "--event", "@-", input='{"a": 1}').exit_code == 0


def test_explain_query_notation(run: Callable[..., Any]) -> None:
    args = ("explain", "mark=FORD&year_from=2014", "--event", '{"mark": "FORD", "year": "2015"}')
    assert run(*args, "--spelling", "query").exit_code == 0
    done = run(*args)
    assert done.exit_code == 2
    assert done.stderr.endswith("(if this is HTTP query notation, give --spelling query)\n")


@pytest.mark.parametrize("is_terminal", [False, True])
def test_text_of_an_event_does_not_steer_the_terminal(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    if is_terminal:
        monkeypatch.setattr("rich.console.Console.is_terminal", True)
    event = json.dumps({"price": "\x1b[2Jred\n\x07é"})
    done = run("explain", "price < 5", "--event", event)
    assert r"price = '\x1b[2Jred\n\x07é' is not < 5" in done.stdout
    assert "\x1b[2J" not in done.stdout
    done = run("explain", "\x1b[2J", "--event", event)
    assert "\x1b[2J" not in done.stderr


def test_explain_asks_that_the_subscription_is_near(run: Callable[..., Any]) -> None:
    write("subs.jsonl", [{"id": "s", "filter": True, "location": [0, 0], "radius_m": 10}])
    event = '{"attributes": {}, "location": [0, 1]}'
    done = run("explain", "-s", "subs.jsonl", "--id", "s", "--event", event)
    assert done.exit_code == 1
    assert "111195.1 m away" in done.stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "give either a FILTER"),
        (("a = 1",), "give the event"),
        (("a = 1", "--id", "s1", "--event", "{}"), "give either"),
        (("--id", "s1", "--event", "{}"), "give either"),
        (("-s", "subs.jsonl", "--event", "{}"), "give either"),
        (("-s", "subs.jsonl", "--id", "s9", "--event", "{}"), "no subscription 's9' in subs.jsonl"),
        (("a <", "--event", "{}"), "^"),
        (("a = 1", "--event", "{"), "not JSON"),
        (("a = 1", "--event", "@nothing.json"), "nothing.json: No such file"),
        (("a = 1", "--event", "{}", "--spelling", "latin"), "latin"),
        (("-s", "bad.jsonl", "--id", "b", "--event", "{}"), "bad.jsonl, line 1: subscription 'b'"),
    ],
)
def test_explain_bad_input(run: Callable[..., Any], args: tuple[str, ...], said: str) -> None:
    write("bad.jsonl", [{"id": "b", "filter": "x <"}])
    done = run("explain", *args)
    assert done.exit_code == 2
    assert done.stderr.startswith("error: ")
    assert said in done.stderr


# -- demo


def test_generated_ads_and_searches_are_varied() -> None:
    filters = " ".join(repr(one.filter) for one in generate_searches(300))
    for word in ("is_in", "between", "|", "~", "distance", "within", "in_box", "starts_with"):
        assert word in filters
    ads = generate_ads(200)
    assert {ad.attributes["kind"] for ad in ads} == {("car",), ("flat",)}
    assert any(len(ad.attributes.get("tags", ())) > 1 for ad in ads)
    assert all(ad.location is not None for ad in ads)


# -- the program itself


@pytest.mark.parametrize("command", ["match", "explain", "run", "send", "demo"])
def test_help_has_an_example(run: Callable[..., Any], command: str) -> None:
    done = run(command, "--help")
    assert done.exit_code == 0
    assert "Example" in done.stdout
    assert f"tamis {command}" in done.stdout


def test_version(run: Callable[..., Any]) -> None:
    done = run("--version")
    assert done.exit_code == 0
    assert done.stdout.startswith("tamis 0.")


def program(*args: str, **kwargs: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-W", "error", "-c", "from tamis.cli import main; main()", *args]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, **kwargs)


def test_help_needs_no_heavy_imports() -> None:
    code = (
        "import sys\nfrom tamis.cli.app import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'numpy', 'pyarrow', 'numba', 'sqlglot', 'shapely'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_pipe_is_answered_as_it_speaks(run: Callable[..., Any]) -> None:
    with program(*MATCH, "-") as running:
        assert running.stdin is not None
        assert running.stdout is not None
        for price in (1, 2, 3):
            running.stdin.write(b'{"price": %d}\n' % price)
            running.stdin.flush()
            assert json.loads(running.stdout.readline())["event_id"] == str(price)
        running.stdin.close()
        assert running.wait(30) == 0


def test_a_reader_that_leaves_ends_the_run_quietly(run: Callable[..., Any]) -> None:
    write("events.jsonl", [{"price": 1}] * 50_000)
    with program(*MATCH, "events.jsonl") as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait(30) == 141


# How the shell may leave stdin and stdout, a command, its exit code, and what is said.
STREAMS = [
    ("| true", "tamis explain 'price < 5' -e '{\"price\": 1}'", 141, ""),
    ("| true", "tamis explain 'price < 5' -e '{\"price\": 1}' --json", 141, ""),
    ("| true", "tamis match --help", 141, ""),
    ("| true", "tamis match -s subs.jsonl -e events.jsonl", 141, ""),
    ("> /dev/full", "tamis --help", 2, "error: No space left on device\n"),
    ("> /dev/full", "tamis explain price -e '{}'", 2, "error: No space left on device\n"),
    (
        "> /dev/full",
        "tamis match -s subs.jsonl -e events.jsonl",
        2,
        "error: No space left on device",
    ),
    (">&-", "tamis explain price -e '{}'", 2, "error: stdout is closed"),
    (">&-", "tamis match -s subs.jsonl -e events.jsonl", 2, "error: stdout is closed"),
    (">&-", "tamis match -s subs.jsonl -e events.jsonl -o out.jsonl", 0, ""),
    ("<&-", "tamis explain price -e @-", 2, "error: stdin is closed"),
    ("<&-", "tamis match -s subs.jsonl -e -", 2, "error: stdin is closed"),
    ("", "tamis match --nope", 2, "error: No such option: --nope (see tamis match --help)\n"),
    ("", "tamis match -s subs.jsonl", 2, "error: Missing option '--events' / '-e'. (see "),
    ("", "tamis frobnicate", 2, "error: No such command 'frobnicate'. (see tamis --help)\n"),
    ("", "tamis demo --seconds 0", 2, "error: Invalid value for '--seconds': "),
]


def open_unwritable(is_full: bool) -> IO[str]:
    """A full device, or a pipe that nobody reads."""
    if is_full:
        return Path("/dev/full").open("w")
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w")


@pytest.mark.parametrize(("streams", "command", "code", "said"), STREAMS)
def test_exit_codes_of_the_program(
    run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    streams: str, command: str, code: int, said: str,
) -> None:  # fmt: skip
    monkeypatch.setattr("sys.argv", shlex.split(command))
    with ExitStack() as stack:
        if streams in (">&-", "<&-"):
            monkeypatch.setattr("sys.stdout" if streams == ">&-" else "sys.stdin", None)
        elif streams:
            stdout = open_unwritable(is_full=streams == "> /dev/full")
            monkeypatch.setattr("sys.stdout", stack.enter_context(stdout))
        assert run_app(app) == code
    stderr = capsys.readouterr().err
    assert stderr.startswith(said)
    assert stderr.count("\n") == bool(said)


def wait_until_idle(pid: int) -> None:
    """Wait until a process uses no CPU for a quarter of a second, as one that waits for input."""
    stat, before, now = Path(f"/proc/{pid}/stat"), [""], ["?"]
    while before != now:
        before = now
        time.sleep(0.25)
        now = stat.read_text().rpartition(")")[2].split()[11:13]


def test_an_interrupt_ends_with_130_and_leaves_no_file(run: Callable[..., Any]) -> None:
    with program(*MATCH, "-") as first:  # which compiles kernels if it must, for a minute perhaps
        first.communicate(b'{"price": 1}\n', timeout=240)
        assert first.returncode == 0
    with program(*MATCH, "-", "-o", "out.parquet") as running:
        assert running.stdin is not None
        assert running.stderr is not None
        running.stdin.write(b'{"price": 1}\n')
        running.stdin.flush()
        deadline = time.monotonic() + 60
        while not list(Path().glob(".out.parquet*")) and time.monotonic() < deadline:
            time.sleep(0.05)
        # Not while it is opening that file: Python warns of one that an interrupt left open.
        wait_until_idle(running.pid)
        os.kill(running.pid, signal.SIGINT)
        assert running.wait(30) == 130
        assert b"Traceback" not in running.stderr.read()
    assert list(Path().glob("*out.parquet*")) == []


# What LLVM does when it is done: call Python, which may find that an interrupt is waiting.
INTERRUPTED_IN_A_CALLBACK = """
import ctypes, os, signal, sys, time, types
from tamis.cli.terminal import exit_codes
import typer

compiler = types.ModuleType("llvmlite.binding.executionengine")
exec("def notice(): interrupt(); print('noticed', flush=True)", compiler.__dict__)
compiler.interrupt = lambda: os.kill(os.getpid(), signal.SIGINT)

def job():
    with exit_codes():
        ctypes.CFUNCTYPE(None)(compiler.notice)()
        sys.stdin.read()

typer.run(job)
"""


def test_an_interrupt_waits_while_the_compiler_is_at_work() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED_IN_A_CALLBACK],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip
        try:
            assert running.wait(30) == 130
            assert running.stdout is not None
            assert running.stderr is not None
            assert running.stdout.read() == b"noticed\n"
            assert running.stderr.read() == b""
        finally:
            running.kill()


# -- the documentation


def blocks_of_the_documentation() -> list[tuple[str, str]]:
    text = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text()
    return re.findall(r"```console\n\$ (.+)\n((?:.*\n)*?)```", text)


def test_the_documented_commands_print_what_is_documented(run: Callable[..., Any]) -> None:
    n_run = 0
    for command, text in blocks_of_the_documentation():
        word, *args = shlex.split(command)
        if word == "cat":
            Path(args[0]).write_text(text)
            continue
        assert word == "tamis"
        assert run(*args).output == text
        n_run += 1
    assert n_run == 5
