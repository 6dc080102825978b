"""A pipeline on a standalone cluster: submitted with a wheel, and killed in every part."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tamis.bench.ads import generate_ads, generate_searches
from tamis.language import col
from tamis.model import Event, Subscription
from tests.integration.ad_market import Market
from tests.integration.pipeline_hooks import DRIVER_MOMENTS, EXECUTOR, PYTHON_WORKER, arm, is_armed
from tests.integration.spark_cluster import Cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
JOB = Path(__file__).with_name("pipeline_job.py")
PATIENCE_S = 200  # never waited for when all is well; a busy machine takes its time
SETTINGS = """
state = "state"
[events]
path = "ads"
[subscriptions]
path = "searches"
[matching]
tokens = 2
keep = "1 s"
interval = "1 s"
[notifications]
outbox = "outbox"
interval = "1 s"
[spark]
"spark.master" = "local[2]"
"spark.sql.shuffle.partitions" = 2
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        running.start()
        yield running
    finally:
        running.stop()


def install_wheel(folder: Path) -> Path:
    """A virtual environment with a wheel of Tamis, built from here, and what it depends on."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    built = ["--no-deps", "--no-build-isolation", "--use-pep517", "--wheel-dir", folder, ROOT]
    subprocess.run([*pip, "wheel", *built], check=True)
    (wheel,) = folder.glob("tamis-*.whl")
    python = folder / "env" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    (site,) = (folder / "env" / "lib").glob("*/site-packages")
    subprocess.run([*pip, "install", "--no-deps", "--target", site, wheel], check=True)
    # The other packages are there already; a .pth file in that folder is not followed, so that
    # the Tamis installed there for development is out of sight.
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_a_wheel_is_submitted_to_a_cluster(cluster: Cluster, tmp_path: Path) -> None:
    market = Market(tmp_path, SETTINGS)
    market.save([*generate_searches(40, seed=5), Subscription("all", "kind IS NOT NULL")])
    market.post(generate_ads(40, seed=5), "{broken")
    python = install_wheel(tmp_path)
    program = tmp_path / "run.py"
    program.write_text("from tamis.cli import main\nmain()\n")
    said = tmp_path / "said"
    # Kernels are not compiled, which would take longer than all else: it is a new folder.
    process = cluster.submit(
        program, "run", market.folder / "pipeline.toml", "--once", "--json", complaints=said,
        **{"spark.pyspark.python": str(python), "spark.executorEnv.NUMBA_DISABLE_JIT": "1"},
        environ={"NUMBA_DISABLE_JIT": "1"},
    )  # fmt: skip
    try:
        assert process.wait(PATIENCE_S) == 0, said.read_text()[-4000:]
    finally:
        process.kill()
    (done,) = [json.loads(line) for line in said.read_text().splitlines() if line[:1] == "{"]
    assert (done["events"], done["dead_letters"]) == (40, 1)
    assert len(market.expected) > 20
    assert sorted(market.told()) == sorted(market.expected)
    # Not where the file says, but where spark-submit does: each worker has had an executor.
    assert len(list(cluster.folder.glob("work-*/app-*"))) == cluster.n_workers


class Trial:
    """A pipeline of which one part after another is killed while ads keep coming."""

    def __init__(self, cluster: Cluster, folder: Path, seed: int) -> None:
        self.cluster, self.market = cluster, Market(folder, SETTINGS)
        self.random = random.Random(seed)
        self.complaints = folder / "complaints"
        self.n_ads = self.round = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.next_round()

    @property
    def folder(self) -> Path:
        return self.market.folder

    def next_round(self) -> None:
        """Save new searches and change old ones, all for ads of this round and later ones.

        Ads that were posted before may be matched before the change or after it.
        """
        self.round += 1
        is_now = col("round") >= self.round
        saved = []
        for number in range(30):
            low, id = self.random.randrange(100), f"s{self.random.randrange(200)}"
            wanted = is_now & (col("price") >= low) & (col("price") < low + 10)
            if id in self.market.searches:
                wanted |= ~is_now & self.market.searches[id].condition
            saved.append(Subscription(id, wanted, priority=number % 10))
        self.market.save(list({one.id: one for one in saved}.values()))

    def post(self) -> None:
        made = [
            Event(f"ad{self.n_ads + n}", {"round": self.round, "price": self.random.randrange(100)})
            for n in range(20)
        ]
        self.n_ads += len(made)
        self.market.post(made)

    def start(self) -> None:
        """Start the pipeline if it does not run."""
        if self.process is not None and self.process.poll() is None:
            return
        path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
        self.process = self.cluster.submit(
            JOB, self.folder, complaints=self.complaints, environ={"PYTHONPATH": path},
            **{"spark.pyspark.python": sys.executable, "spark.executorEnv.PYTHONPATH": path},
        )  # fmt: skip

    def kill_at(self, moment: str) -> None:
        """Have a part die at a moment, which the hooks in the job find."""
        arm(self.folder, moment)
        if moment == "a version is written":
            self.next_round()
        self.feed_until(lambda: not is_armed(self.folder, moment))
        if moment in DRIVER_MOMENTS:
            self.expect_death()

    def kill_driver(self) -> None:
        self.feed_a_while()
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.expect_death()

    def kill_one(self, found: Callable[[], list[int]]) -> None:
        """Kill a Python worker or an executor."""
        self.feed_until(lambda: bool(found()))
        self.feed_a_while()
        os.kill(self.random.choice(found()), signal.SIGKILL)

    def feed_a_while(self) -> None:
        before = len(self.market.told())
        self.feed_until(lambda: len(self.market.told()) > before)
        for _ in range(2):
            self.post()
            time.sleep(self.random.random())

    def expect_death(self) -> None:
        assert self.process is not None
        assert self.process.wait(PATIENCE_S) == -signal.SIGKILL, self.complaint("it ended")

    def feed_until(self, is_done: Callable[[], bool]) -> None:
        self.wait_for(is_done, self.post)

    def recover(self) -> None:
        """Go on, with the pipeline started again if its driver was killed, until all is told."""
        self.start()
        self.post()
        self.wait_for(lambda: self.market.expected <= set(self.market.told()))
        self.check()

    def check(self) -> None:
        told = self.market.told()
        assert len(told) == len(set(told)), "told twice"
        assert set(told) == self.market.expected

    def wait_for(self, is_done: Callable[[], bool], act: Callable[[], None] | None = None) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_done():
            assert time.monotonic() < deadline, self.complaint("it takes too long")
            if self.process is not None and self.process.poll() not in (None, -signal.SIGKILL):
                raise AssertionError(self.complaint("it ended by itself"))
            if act is not None:
                act()
            time.sleep(0.3)

    def complaint(self, trouble: str) -> str:
        return f"{trouble}\n{self.complaints.read_text()[-6000:]}"


@contextmanager
def trial_on(cluster: Cluster, folder: Path, seed: int) -> Iterator[Trial]:
    """A trial whose pipeline is gone at the end."""
    trial = Trial(cluster, folder, seed)
    try:
        trial.start()
        yield trial
    finally:
        if trial.process is not None and trial.process.poll() is None:
            os.killpg(trial.process.pid, signal.SIGKILL)
            trial.process.wait()


def kill(trial: Trial, what: str) -> None:
    """One round: kill something under load, and see that all is told, and once."""
    trial.next_round()
    if what == "driver":
        trial.kill_driver()
    elif what == "Python worker":
        trial.kill_one(trial.cluster.python_workers)
    elif what == "executor":
        trial.kill_one(trial.cluster.executors)
    else:
        trial.kill_at(what)
    trial.recover()


def test_killed_in_every_part(cluster: Cluster, tmp_path: Path) -> None:
    """The worst moments; Java takes its time to start, so the others are in the long test."""
    with trial_on(cluster, tmp_path, seed=1) as trial:
        for what in (PYTHON_WORKER, "executor", "notifications are in the outbox"):
            kill(trial, what)


@pytest.mark.perf
@pytest.mark.timeout(3600)
def test_killed_twenty_times(cluster: Cluster, tmp_path: Path) -> None:
    moments = [*DRIVER_MOMENTS, PYTHON_WORKER, EXECUTOR, PYTHON_WORKER, EXECUTOR]
    rounds = [*moments, *["driver"] * 4, *["Python worker"] * 3, *["executor"] * 3]
    with trial_on(cluster, tmp_path, seed=2) as trial:
        trial.random.shuffle(rounds)
        for number, what in enumerate(rounds, 1):
            kill(trial, what)
            print(f"{number}: {what}: {len(trial.market.expected)} told", flush=True)
        assert len(rounds) == 20
