"""Lynceus inside other tools: Optuna, Ray Tune, MLflow, Weights & Biases, OpenTelemetry.

Each module imports its tool only where it is used.
"""
