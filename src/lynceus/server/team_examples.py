"""Example responses about shared budgets and tokens."""

from __future__ import annotations

from typing import Any

_BUDGET = {
    "account": "project:forecasts",
    "usd": 200.0,
    "per": "month",
    "month": "November 2026",
    "ends_s": 1796083200.0,
    "charged_usd": 41.2,
    "reserved_usd": 3.5,
    "left_usd": 155.3,
}
_TOKEN = {
    "name": "airflow",
    "role": "runner",
    "created_s": 1795000000.0,
    "created_by": "ana",
    "last_used_s": None,
    "expires_s": 1797592000.0,
}
TEAM_EXAMPLES: dict[str, Any] = {
    "budgets": {"budgets": [_BUDGET]},
    "set_budget": _BUDGET,
    "remove_budget": {"account": "project:forecasts", "usd": None},
    "tokens": {"tokens": [_TOKEN]},
    "add_token": _TOKEN | {"token": "lyn_ followed by 43 letters, digits, - and _"},
    "revoke_token": {"name": "airflow", "role": None},
}
