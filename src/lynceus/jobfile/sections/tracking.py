"""The section `tracking`: where trials are logged while a study runs."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import Field, field_validator

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

    @field_validator("mlflow", "opentelemetry")
    @classmethod
    def _without_password(cls, value: str | None) -> str | None:
        """The job file is stored with the study, where others read it."""
        try:
            secret = value is not None and urlsplit(value).password is not None
        except ValueError:  # no address
            secret = False
        if secret:
            raise ValueError(
                "the address has a password, and job files hold none; set MLFLOW_TRACKING_PASSWORD, PGPASSWORD or "
                "OTEL_EXPORTER_OTLP_HEADERS in the environment."
            )
        return value
