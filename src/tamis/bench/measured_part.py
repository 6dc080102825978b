"""The part of a page that a benchmark writes; the rest of the page is written by hand."""

from __future__ import annotations

from pathlib import Path

END = "<!-- end of the measured part -->"


def begin(command: str) -> str:
    """The mark before what a command writes."""
    return f"<!-- measured: `{command} --report` writes this part -->"


def write_measured_part(path: Path, command: str, text: str) -> Path:
    """Write what stands between the marks of a command, at the end of the page if it has none."""
    mark = begin(command)
    page = path.read_text() if path.exists() else ""
    before, _, rest = page.partition(mark)
    after = rest.partition(END)[2].strip()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"{before.rstrip()}\n\n{mark}\n\n{text}\n{END}\n" + (f"\n{after}\n" if after else "")
    )
    return path
