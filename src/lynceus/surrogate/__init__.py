"""Models of a job: each maps a situation to a belief about every configuration."""
