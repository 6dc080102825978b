"""The part of a page that a benchmark writes; the rest of the page is written by hand."""

from __future__ import annotations

from pathlib import Path

_TO = "<!-- end of the measured part -->"


def write_measured_part(path: Path, command: str, text: str) -> Path:
    """Write what stands between the marks of a command, at the end of the page if it has none."""
    mark = f"<!-- measured: `{command} --report` writes this part -->"
    page = path.read_text() if path.exists() else ""
    before, _, rest = page.partition(mark)
    after = rest.partition(_TO)[2].strip()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"{before.rstrip()}\n\n{mark}\n\n{text}\n{_TO}\n" + (f"\n{after}\n" if after else "")
    )
    return path
