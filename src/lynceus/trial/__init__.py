"""One run of a configuration: what was planned and ordered, what happened, and what a model learns from it."""
