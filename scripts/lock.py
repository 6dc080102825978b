"""Write constraints.txt anew: the newest versions that work together, as ``name==version``.

Called by `make lock`. One set of versions has to do for every Python and platform, so it is
resolved by uv, in a throw-away environment; pip resolves for the running Python only.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from set_up import BUILD_TOOLS, OLDEST_PYTHON, ROOT

HEADER = """\
# The versions Tamis is developed and tested with; the same set installs on Python 3.11 to 3.13.
# Written by 'make lock' from pyproject.toml. Where packages come from is pip's configuration.
"""
# uv reads settings of its own; these are pip's names for the same things.
SETTINGS = {
    "UV_DEFAULT_INDEX": "index-url",
    "UV_INDEX": "extra-index-url",
    "UV_FIND_LINKS": "find-links",
    "SSL_CERT_FILE": "cert",
}


def resolve(folder: Path) -> str:
    """Let uv resolve pyproject.toml with all extras, and the build tools."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "uv"], check=True)
    tools = folder / "build-tools.in"
    tools.write_text("\n".join(BUILD_TOOLS))
    oldest = ".".join(map(str, OLDEST_PYTHON))
    command = [folder / "bin" / "uv", "pip", "compile", "--quiet", "--universal", "--all-extras"]
    options = ["--python-version", oldest, "--fork-strategy", "fewest", "--upgrade"]
    plain = ["--no-annotate", "--no-header", "--no-emit-index-url", "--no-emit-find-links"]
    done = subprocess.run(
        [*command, *options, *plain, ROOT / "pyproject.toml", tools],
        env={**uv_settings(python), **os.environ},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return done.stdout


def uv_settings(python: Path) -> dict[str, str]:
    """Translate pip's configuration, from its files and its environment variables."""
    listed = subprocess.run(
        [python, "-m", "pip", "config", "list"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    options = dict(re.findall(r"^(?:global|:env:)\.([\w-]+)='(.*)'$", listed, re.MULTILINE))
    return {key: options[name] for key, name in SETTINGS.items() if name in options}


def pins(resolved: str) -> list[str]:
    """Keep names and versions; a package that needs two versions is an error.

    >>> pins("colorama==0.4.6 ; sys_platform == 'win32'")
    ['colorama==0.4.6']
    """
    found = sorted(set(re.findall(r"^([\w.-]+==[\w.+!-]+)", resolved, re.MULTILINE)))
    names = [pin.partition("==")[0] for pin in found]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise SystemExit(f"no single version does for every Python: {', '.join(doubled)}")
    return found


def main() -> None:
    """Resolve and write the file."""
    with tempfile.TemporaryDirectory() as folder:
        found = pins(resolve(Path(folder)))
    (ROOT / "constraints.txt").write_text(HEADER + "\n".join(found) + "\n")
    print(f"constraints.txt: {len(found)} versions", file=sys.stderr)


if __name__ == "__main__":
    main()
