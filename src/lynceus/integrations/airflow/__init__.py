"""An Airflow provider: operators for recurring jobs. See docs/schedulers.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lynceus.version import DISTRIBUTION, __version__

if TYPE_CHECKING:
    from lynceus.integrations.airflow.operators import LynceusConfig as LynceusConfig
    from lynceus.integrations.airflow.operators import LynceusRun as LynceusRun

__all__ = ["LynceusConfig", "LynceusRun", "get_provider_info"]


def get_provider_info() -> dict[str, Any]:
    """What Airflow shows of this provider (entry point `apache_airflow_provider`).

    >>> get_provider_info()["name"]
    'Lynceus'
    """
    module = "lynceus.integrations.airflow.operators"
    return {
        "package-name": DISTRIBUTION,
        "name": "Lynceus",
        "description": "Runs recurring jobs with the configuration that Lynceus keeps right.",
        "versions": [__version__],
        "integrations": [{"integration-name": "Lynceus", "external-doc-url": "", "tags": ["software"]}],
        "operators": [{"integration-name": "Lynceus", "python-modules": [module]}],
    }


def __getattr__(name: str) -> Any:
    if name in ("LynceusConfig", "LynceusRun"):
        from lynceus.integrations.airflow import operators

        return getattr(operators, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
