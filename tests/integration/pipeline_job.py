"""The job of test_cluster_kills.py: ``tamis run`` with moments at which it dies.

Run as ``spark-submit pipeline_job.py FOLDER``, in a process group of its own.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tamis.cli import main
from tests.integration.pipeline_hooks import install

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    install(folder)
    sys.argv = ["tamis", "run", str(folder / "pipeline.toml")]
    main()
