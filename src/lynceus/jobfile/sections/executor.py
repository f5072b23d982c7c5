"""The section `executor`: where trials run."""

from __future__ import annotations

from pydantic import ConfigDict, Field, model_validator

from lynceus.problem.fields import Section


class ExecutorSection(Section):
    """Where trials run. The executor validates the other fields by itself (`lynceus plugins` lists executors)."""

    model_config = ConfigDict(extra="allow")

    kind: str = Field(
        default="local",
        description="local: processes of this machine; slurm, ray, skypilot, kubernetes, or a plugin's name",
    )
    run_directory: str = Field(default=".lynceus", description="where outputs of trials are kept, beside the job file")

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, value: object) -> object:
        if isinstance(value, str):
            return {"kind": value}
        if isinstance(value, dict) and "type" in value:
            if "kind" in value:
                raise ValueError("it has both kind and type; keep kind.")
            return {"kind" if name == "type" else name: one for name, one in value.items()}
        return value
