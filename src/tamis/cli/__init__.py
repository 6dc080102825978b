"""The command line: ``tamis match``, ``tamis explain``, ``tamis demo``."""

from tamis.cli.app import main

__all__ = ["main"]
