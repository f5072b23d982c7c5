"""`python -m lynceus.cli`: the command line without an installed script."""

from lynceus.cli.app import main

main()
