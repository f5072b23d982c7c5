"""make bench: the benchmark of a decision."""

from benchmarks.decision import main

main()
