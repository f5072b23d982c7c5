"""One example response per operation, for the OpenAPI document. A test compares their fields with those of a real server."""

from __future__ import annotations

from typing import Any

from lynceus.server.job_examples import JOB_EXAMPLES
from lynceus.server.team_examples import TEAM_EXAMPLES
from lynceus.version import __version__

_PARAMS = {"threads": 4, "level": 1}
_TRIAL_ROW = {
    "number": 3,
    "params": _PARAMS,
    "price_usd_per_hour": 0.2,
    "timeout_s": 600.0,
    "reserved_usd": 0.033,
    "why": "expected improvement $0.0009 for $0.0041",
    "state": "COMPLETE",
    "reason": None,
    "runtime_s": 312.5,
    "cost_usd": 0.0174,
    "value": 0.0174,
    "charged_usd": 0.0174,
    "keeps_constraints": True,
    "metrics": {"accuracy": 0.93},
    "detail": "",
    "started": "2026-09-22T02:00:14Z",
    "ended": "2026-09-22T02:05:27Z",
    "input": {"size": 120000000000.0},
    "peak_memory_bytes": 2147483648.0,
    "cpus_used": 3.4,
    "read_bytes": 734003200.0,
    "written_bytes": 52428800.0,
}
_OVERVIEW = {
    "name": "nightly-sessions",
    "state": "RUNNING",
    "reason": None,
    "objective": "minimize cost",
    "constraints": ["runtime <= 45m"],
    "spent_usd": 3.2,
    "reserved_usd": 0.4,
    "budget_usd": 25.0,
    "trials": 17,
    "running": 2,
    "best_value": 0.0174,
    "best_trial": 3,
    "best_params": _PARAMS,
}
_CHOICE = {
    "row": 5,
    "params": _PARAMS,
    "value": 0.0174,
    "runtime_s": 312.5,
    "cost_usd": 0.0174,
    "probability": 0.97,
}
_ANSWER = {
    "study": "nightly-sessions",
    "params": _PARAMS,
    "command": "./job.sh 4 1",
    "trial": 3,
    "measured": True,
    "value": 0.0174,
    "runtime_s": 312.5,
    "cost_usd": 0.0174,
    "cost_interval_usd": [0.0168, 0.0181],
    "noise": 0.06,
    "cost_basis": "$0.20/h × 5m12s = $0.017 (expected; with a probability of 80 % from $0.017 to $0.018)",
    "probability": 0.97,
    "reaches_confidence": True,
    "shortfall": None,
    "baseline_usd": 0.0295,
    "baseline_interval_usd": [0.0241, 0.0362],
    "baseline_basis": "predicted",
    "baseline_measured": False,
    "saved_usd": 0.0121,
    "saved_interval_usd": [0.0067, 0.0188],
    "saving": 0.41,
    "saving_interval": [0.28, 0.52],
    "future": {"count": 900.0, "unit": "runs", "per_month": 150.0, "months": 6.0, "assumed": False},
    "future_saving_usd": 10.89,
    "future_saving_interval_usd": [6.03, 16.92],
    "pays_back_after_runs": 264.5,
    "pays_back_interval_runs": [170.2, 477.6],
}
_IMPORTANCE = [{"parameter": "threads", "share": 0.8, "effect": [[1, 0.05], [4, 0.02]]}]
_EXPLANATION = {
    "study": "nightly-sessions",
    "settled": 17,
    "next": {"trial": {"number": 18, "params": _PARAMS, "timeout_s": 600.0}, "reason": None},
    "candidates": [{"params": _PARAMS, "gain": 0.0009, "charge_usd": 0.0041, "probability": 0.9}],
    "importance": _IMPORTANCE,
    "rank_agreement": [],
    "history": None,
    "infeasible": None,
    "shortfall": None,
}

EXAMPLES: dict[str, Any] = {
    "health": {"status": "ok", "version": __version__},
    "session": {
        "signed_in": True,
        "role": "runner",
        "token": "ana",
        "can_read": True,
        "can_write": True,
        "csrf": "5d41402abc4b2a76b9719d911017c592",
        "needs_token": True,
        "writes": True,
        "version": __version__,
    },
    "studies": {"v": 2, "kind": "studies", "studies": [_OVERVIEW]},
    "create": {"name": "nightly-sessions", "note": None},
    "study": _OVERVIEW
    | {
        "identity": "9f86d081",
        "sequence": 51,
        "open": [18, 19],
        "parameters": {"threads": [1, 2, 4], "level": [1, 2]},
        "job": {"name": "nightly-sessions"},
    },
    "study_view": {
        "v": 2,
        "kind": "study",
        "name": "nightly-sessions",
        "settled": 17,
        "head": _OVERVIEW,
        "open": [],
        "trials": {},
    },
    "ask": {
        "trial": {
            "number": 3,
            "params": _PARAMS,
            "timeout_s": 600.0,
            "why": "expected improvement $0.0009 for $0.0041",
            "price_usd_per_hour": 0.2,
            "max_charge_usd": 0.033,
        },
        "reason": None,
        "wait": False,
    },
    "tell": {"trial": _TRIAL_ROW, "spent_usd": 3.22},
    "heartbeat": {"requested_state": "run"},
    "stop": {"open_trials": 2},
    "resume": {"budget_usd": 30.0, "constraints": ["time <= 45m"]},
    "stop_trial": {"number": 3, "worker": "host-7"},
    "enqueue": {"queue": [_PARAMS]},
    "add_trials": {"added": 1, "trials": 18},
    "note": {"text": "Moved to larger disks on Monday.", "version": 3, "written_s": 1.79e9},
    "rename": {"name": "nightly-sessions-2025"},
    "delete": {"name": "nightly-sessions", "trials": 17, "left": None},
    "contour": {
        "study": "nightly-sessions",
        "settled": 17,
        "parameters": ["threads", "level"],
        "x": {"parameter": "threads", "steps": [[1], [2], [4]]},
        "y": {"parameter": "level", "steps": [[1], [2]]},
        "value": [[0.05, 0.03, 0.02], [0.06, 0.03, None]],
        "probability": [[0.4, 0.9, 0.97], [0.3, 0.8, None]],
    },
    "trials": {"total": 18, "trials": [_TRIAL_ROW], "next_offset": 100},
    "trial": {
        "v": 2,
        "kind": "trial",
        "study": "nightly-sessions",
        "number": 3,
        "state": "COMPLETE",
        "output": {"stdout": {"text": "done\n"}},
    },
    "best": _ANSWER,
    "explain": _EXPLANATION | {"calibration": {"coverage": 0.8, "median_factor": 1.1, "predictions": []}},
    "insight": _EXPLANATION | {"v": 2, "kind": "insight", "answer": _ANSWER},
    "importance": {"importance": _IMPORTANCE},
    "what_if": {
        "study": "nightly-sessions",
        "answers": [
            {
                "label": "runtime <= 45m",
                "deadline_s": 2700.0,
                "constraints": ["time <= 45m"],
                "measured": _CHOICE,
                "shortfall": None,
                "predicted": None,
                "undecided": 1,
            }
        ],
        "front": [{"number": 3, "params": _PARAMS, "runtime_s": 312.5, "cost_usd": 0.0174}],
        "inputs": [_CHOICE | {"input": {"size": 240000000000.0}, "runtime_interval_s": [480.0, 690.0]}],
    },
    "compare": {"v": 2, "kind": "comparison", "same_objective": True, "sides": [], "parameters": []},
    **JOB_EXAMPLES,
    **TEAM_EXAMPLES,
}


def example(operation: str, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """The documentation of a successful response."""
    return {status: {"content": {"application/json": {"example": EXAMPLES[operation]}}}}
