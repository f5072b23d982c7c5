"""The command line: one file per command, named after it. `main` is the entry point."""

from lynceus.cli.app import main

__all__ = ["main"]
