"""Surrogate models: each maps a state to a prediction for every configuration."""
