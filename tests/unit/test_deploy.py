"""What is in deploy/: files that can be read, with commands and settings that exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from tamis.cli.app import app
from tamis.service.pipeline import pipeline_text
from tamis.service.settings import ServiceSettings
from tamis.spark.settings import read_settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
PROGRAM = "/opt/tamis/bin/tamis"


def check_command(arguments: list[str]) -> None:
    """Raise if ``tamis`` does not know a command or an option; nothing is run."""
    command: Any = typer.main.get_command(app).commands[arguments[0]]  # type: ignore[attr-defined]
    command.make_context("tamis", arguments[1:])


def compose() -> dict[str, Any]:
    held: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return held


def test_the_services_of_the_compose_file_run_what_there_is() -> None:
    services = compose()["services"]
    assert set(services) == {"postgresql", "service", "pipeline", "sender"}
    for name in ("service", "pipeline", "sender"):
        check_command(services[name]["command"])
        assert {"data:/var/lib/tamis", "cache:/var/cache/tamis"} <= set(services[name]["volumes"])
    volumes = {one.partition(":")[0] for held in services.values() for one in held["volumes"]}
    assert volumes - {"./pipeline.toml"} == set(compose()["volumes"])
    build = services["service"]["build"]
    assert (DEPLOY / build["context"] / build["dockerfile"]).exists()
    assert all(one.startswith("127.0.0.1:") for one in services["service"]["ports"])


def test_an_option_that_is_not_there_would_be_noticed() -> None:
    with pytest.raises(Exception, match="No such option"):
        check_command(["serve", "--dta=x"])


def test_the_pipeline_of_the_compose_file_is_the_one_a_service_writes() -> None:
    (database,) = [
        one.partition("=")[2]
        for one in compose()["services"]["service"]["command"] if one.startswith("--database=")
    ]  # fmt: skip
    written = pipeline_text(ServiceSettings(Path("/var/lib/tamis"), database))
    held = tomllib.loads((DEPLOY / "pipeline.toml").read_text())
    assert held == tomllib.loads(written)
    assert read_settings(DEPLOY / "pipeline.toml").events.keep is not None


def test_the_image_starts_what_there_is() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    (entry,) = re.findall(r"^ENTRYPOINT (.+)$", text, re.M)
    (command,) = re.findall(r"^CMD (.+)$", text, re.M)
    assert yaml.safe_load(entry) == [PROGRAM]
    check_command(yaml.safe_load(command))
    (extras,) = re.findall(r"\.whl\)\[([a-z,]+)\]", text)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras.split(",")) <= set(project["optional-dependencies"])
    assert (ROOT / "constraints.txt").exists()


def test_the_unit_starts_what_there_is() -> None:
    text = (DEPLOY / "tamis.service").read_text()
    (start,) = re.findall(r"^ExecStart=(.+)$", text, re.M)
    program, *arguments = shlex.split(start)
    assert program == PROGRAM
    check_command(arguments)
    assert "KillMode=mixed" in text


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd-analyze here")
def test_systemd_can_use_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "tamis.service"
    text = (DEPLOY / "tamis.service").read_text()
    unit.write_text(text.replace(PROGRAM, sys.executable))
    command = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
