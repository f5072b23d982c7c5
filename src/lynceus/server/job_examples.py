"""One example response per operation on recurring jobs."""

from __future__ import annotations

from typing import Any

_PARAMS = {"threads": 4, "level": 1}
_TOTALS = {"runs": 120, "canaries": 3, "failed": 1, "late": 0, "cost_usd": 96.2, "search_usd": 3.2, "saved_usd": 41.7}
_RUN_CONFIG = {
    "job": "nightly",
    "version": 3,
    "params": _PARAMS,
    "run_id": None,
    "canary": False,
    "timeout_s": None,
    "instead_usd": None,
    "reason": "",
    "stale": False,
}
_SETTINGS = {
    "mode": "apply",
    "deadline_s": 2700.0,
    "late_chance": 0.05,
    "allowance_usd": 20.0,
    "exclude": ["sat", "sun"],
    "timezone": "UTC",
    "held": False,
}
_CHANGED = {"job": "nightly", "version": 3, "params": _PARAMS}

JOB_EXAMPLES: dict[str, Any] = {
    "jobs": {
        "v": 2,
        "kind": "jobs",
        "jobs": [
            {
                "name": "nightly",
                "mode": "apply",
                "held": False,
                "version": 3,
                "params": _PARAMS,
                "last_run": {"run_id": "2026-11-17", "runtime_s": 1860.0},
                "totals": _TOTALS,
            }
        ],
    },
    "job": {
        "v": 2,
        "kind": "job",
        "name": "nightly",
        "settings": _SETTINGS,
        "version": {"number": 3, "params": _PARAMS, "by": "lynceus", "reason": "its canary proved itself"},
        "versions": [],
        "runs": [],
        "watch": {"findings": [], "expected_s": 1870.0, "late_chance": 0.01},
        "next": {"kind": "keep", "reason": "nothing has changed since the configuration was chosen"},
        "changes": [],
        "totals": _TOTALS,
    },
    "job_config": _RUN_CONFIG,
    "start_run": _RUN_CONFIG | {"run_id": "2026-11-18", "canary": True, "timeout_s": 2400.0},
    "record_run": {"new": True, "version": 3, "changes": [{"kind": "adopt", "reason": "its canary proved itself"}]},
    "adopt": _CHANGED,
    "rollback": _CHANGED,
    "job_settings": _SETTINGS,
}
