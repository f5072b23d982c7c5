"""The command line: thin skins over the library. `main` is the entry point."""

from lynceus.cli.app import main

__all__ = ["main"]
