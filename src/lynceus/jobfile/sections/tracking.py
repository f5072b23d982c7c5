"""The section `tracking`: where trials are logged while a study runs."""

from __future__ import annotations

from pydantic import Field

from lynceus.problem.fields import Section


class TrackingSection(Section):
    """Tools that get every trial."""

    mlflow: str | None = Field(
        default=None, description="the tracking URI of MLflow: an address, or sqlite:///mlflow.db"
    )
    wandb: str | None = Field(default=None, description="a project of Weights & Biases, or entity/project")
    opentelemetry: str | None = Field(
        default=None, description="where traces go, over OTLP/HTTP, such as http://localhost:4318/v1/traces"
    )
