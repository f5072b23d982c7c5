"""One example answer per operation, for the OpenAPI document. A test asks a real server and compares the fields."""

from __future__ import annotations

from typing import Any

_PARAMS = {"threads": 4, "level": 1}
_RECORD = {
    "number": 3,
    "params": _PARAMS,
    "price_usd_per_hour": 0.2,
    "timeout_s": 600.0,
    "reserved_usd": 0.033,
    "why": "expected gain $0.0009 for $0.0041",
    "state": "COMPLETE",
    "reason": None,
    "runtime_s": 312.5,
    "cost_usd": 0.0174,
    "charged_usd": 0.0174,
    "keeps_limits": True,
    "metrics": {"accuracy": 0.93},
    "detail": "",
}
_LINE = {
    "name": "nightly-sessions",
    "state": "RUNNING",
    "reason": None,
    "objective": "minimize cost",
    "limits": ["runtime <= 45m"],
    "spent_usd": 3.2,
    "reserved_usd": 0.4,
    "budget_usd": 25.0,
    "trials": 17,
    "running": 2,
    "best": 0.0174,
    "best_params": _PARAMS,
}
_CHOICE = {
    "row": 5,
    "params": _PARAMS,
    "value": 0.0174,
    "seconds": 312.5,
    "cost_usd": 0.0174,
    "probability": 0.97,
}
_DOCUMENT = {"v": 1, "name": "nightly-sessions"}

EXAMPLES: dict[str, Any] = {
    "health": {"status": "ok", "version": "0.1.0"},
    "session": {
        "signed_in": True,
        "can_read": True,
        "can_write": True,
        "csrf": "5d41402abc4b2a76b9719d911017c592",
        "needs_token": True,
        "writes": True,
        "version": "0.1.0",
    },
    "studies": {"studies": [_LINE]},
    "create": {"name": "nightly-sessions"},
    "study": {
        "name": "nightly-sessions",
        "identity": "9f86d081",
        "sequence": 51,
        "state": "RUNNING",
        "reason": None,
        "spent_usd": 3.2,
        "reserved_usd": 0.4,
        "budget_usd": 25.0,
        "trials": 17,
        "open": [18, 19],
        "best_value": 0.0174,
        "best_params": _PARAMS,
        "best_trial": 3,
        "parameters": {"threads": [1, 2, 4], "level": [1, 2]},
        "job": {"name": "nightly-sessions"},
    },
    "ask": {
        "trial": {
            "number": 3,
            "params": _PARAMS,
            "timeout_s": 600.0,
            "why": "expected gain $0.0009 for $0.0041",
            "price_usd_per_hour": 0.2,
            "max_charge_usd": 0.033,
        },
        "reason": None,
        "wait": False,
    },
    "tell": {"trial": _RECORD, "spent_usd": 3.22},
    "heartbeat": {"wish": "run"},
    "stop": {"open_trials": 2},
    "resume": {"budget_usd": 30.0},
    "stop_trial": {"number": 3, "worker": "host-7"},
    "enqueue": {"queue": [_PARAMS]},
    "add_trials": {"added": 1, "trials": 18},
    "trials": {"total": 18, "trials": [_RECORD], "next_offset": 100},
    "trial": {
        "v": 1,
        "kind": "trial",
        "study": "nightly-sessions",
        "number": 3,
        "state": "COMPLETE",
        "output": {"stdout": {"text": "done\n"}},
    },
    "best": {"value": 0.0174, "params": _PARAMS, "trial": 3, "recommendation": {"params": _PARAMS, "cost_usd": 0.0174}},
    "explain": {
        "next": {"params": _PARAMS, "cap_s": 600.0},
        "candidates": [{"params": _PARAMS, "gain": 0.0009, "charge_usd": 0.0041, "probability": 0.9}],
        "importance": [{"parameter": "threads", "share": 0.8, "effect": [[1, 0.05], [4, 0.02]]}],
        "calibration": {"coverage": 0.8, "typical_factor": 1.1, "predictions": []},
        "ranks": [],
    },
    "importance": {"importance": [{"parameter": "threads", "share": 0.8, "effect": [[1, 0.05], [4, 0.02]]}]},
    "what_if": {
        "answers": [{"label": "runtime <= 45m", "measured": _CHOICE, "predicted": None, "undecided": 1}],
        "front": [{"number": 3, "params": _PARAMS, "seconds": 312.5, "cost_usd": 0.0174}],
    },
    "compare": {"v": 1, "kind": "comparison", "same_goal": True, "sides": []},
    "studies_view": {"v": 1, "kind": "studies", "studies": [_LINE]},
    "study_view": _DOCUMENT | {"kind": "study", "settled": 17, "head": {"state": "RUNNING"}, "open": [], "trials": {}},
    "insight_view": _DOCUMENT | {"kind": "insight", "verdict": None, "next": {"stop": "…"}, "importance": []},
    "trial_view": {"v": 1, "kind": "trial", "study": "nightly-sessions", "number": 3, "state": "COMPLETE"},
    "what_if_view": _DOCUMENT | {"kind": "what-if", "deadline_s": 2700.0, "measured": _CHOICE, "undecided": 1},
    "compare_view": {"v": 1, "kind": "comparison", "same_goal": True, "sides": []},
    "export": [_RECORD],
}


def answer(operation: str, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """The documentation of a successful answer."""
    return {status: {"content": {"application/json": {"example": EXAMPLES[operation]}}}}
