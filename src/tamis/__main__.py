"""``python -m tamis``: the command line."""

from tamis.cli import main

main()
