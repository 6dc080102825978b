"""The documentation: what it names is there, and commands have the options it gives them."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from scripts import walk_picture
from tamis.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*sorted((ROOT / "docs").glob("**/*.md")), *sorted(ROOT.glob("*.md"))]
COMMANDS = typer.main.get_command(app)
_LINK = re.compile(r"(?<!`)\[[^]\n]*\]\(([^)\s]+)\)")
_MODULE = re.compile(r"`(tamis(?:\.[a-z_]+)+)`")
_COMMAND = re.compile(r"(?:^ {4}|^\$ |`)(tamis [a-z][^`\n|#&>]*)", re.M)

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@pages
def test_links_lead_somewhere(page: Path) -> None:
    lost = [link for link in _LINK.findall(page.read_text()) if not leads_somewhere(page, link)]
    assert lost == []


def leads_somewhere(page: Path, link: str) -> bool:
    if re.match(r"[a-z]+:", link):
        return True
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve() if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


def anchors(page: Path) -> set[str]:
    """The anchors of the headings, as those who show Markdown make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.M)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {text.strip().replace(" ", "-") for text in plain}


@pytest.mark.parametrize("page", ["architecture.md", "security.md"])
def test_modules_that_are_named_exist(page: str) -> None:
    named = _MODULE.findall((ROOT / "docs" / page).read_text())
    assert named
    assert [name for name in named if not exists(name)] == []


def test_the_modules_of_the_picture_exist_and_are_on_the_page() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text()
    lines = (*walk_picture.EVENT, *walk_picture.SUBSCRIPTION)
    for stage in (stage for line in lines for stage in line):
        if stage.module.startswith("tamis."):
            assert exists(stage.module)
            assert stage.module in page


def exists(name: str) -> bool:
    """Whether there is a module of that name, or something of that name in one."""
    parent, _, last = name.rpartition(".")
    if importlib.util.find_spec(parent) is None:
        return False
    return importlib.util.find_spec(name) is not None or hasattr(
        importlib.import_module(parent), last
    )


@pages
def test_commands_have_the_options_they_are_given(page: Path) -> None:
    for command in _COMMAND.findall(page.read_text()):
        for option in unknown_options(command):
            raise AssertionError(f"{command}: there is no {option}")


def unknown_options(command: str) -> Iterator[str]:
    known: Any = COMMANDS
    try:
        words = shlex.split(command)[1:]
    except ValueError:  # it goes on in the next line
        words = command.split()[1:]
    while words and hasattr(known, "commands"):
        if words[0] not in known.commands:
            yield words[0]
            return
        known = known.commands[words.pop(0)]
    options = {name for one in known.params for name in one.opts} | {"--help"}
    for word in words:
        if word.startswith("--") and word.partition("=")[0] not in options:
            yield word


def test_a_wrong_option_is_noticed() -> None:
    assert list(unknown_options("tamis serve --prot 80")) == ["--prot"]
    assert list(unknown_options("tamis srve")) == ["srve"]
    assert not leads_somewhere(ROOT / "README.md", "docs/none.md")
    assert not leads_somewhere(ROOT / "README.md", "docs/cli.md#none")
