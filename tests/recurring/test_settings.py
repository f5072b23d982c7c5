"""What the user allows is checked where it enters."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from lynceus.errors import InputError
from lynceus.recurring.excluded_times import ExcludedTime
from lynceus.recurring.settings import Settings


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"mode": "always"}, "mode"),
        ({"late_chance": 0.0}, "late_chance"),
        ({"allowance_usd": -1.0}, "allowance"),
        ({"deadline_s": 0.0}, "deadline"),
        ({"canary_cap": 0.5}, "canary_cap"),
        ({"horizon_runs": 0}, "horizon_runs"),
        ({"timezone": "Mars/Olympus"}, "timezone"),
        ({"exclude": ("someday",)}, "exclude"),
        ({"exclude": ("mon 25:00-26:00",)}, "exclude"),
    ],
)
def test_a_mistake_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        Settings(**given)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("sat", "2026-11-21T12:00", "2026-11-20T12:00"),
        ("2026-12-24", "2026-12-24T00:00", "2026-12-25T00:00"),
        ("mon-fri 08:00-18:00", "2026-11-18T17:59", "2026-11-18T18:00"),
        ("fri-mon", "2026-11-23T10:00", "2026-11-24T10:00"),
        ("22:00-06:00", "2026-11-18T05:59", "2026-11-18T06:00"),
        ("sun 22:00-06:00", "2026-11-23T05:00", "2026-11-22T05:00"),
    ],
)
def test_days_and_hours_are_read(text: str, inside: str, outside: str) -> None:
    excluded = ExcludedTime.parse(text)
    assert excluded.contains(datetime.datetime.fromisoformat(inside))
    assert not excluded.contains(datetime.datetime.fromisoformat(outside))


def test_hours_are_those_of_the_time_zone() -> None:
    moment = datetime.datetime(2026, 7, 1, 7, 30, tzinfo=datetime.UTC).timestamp()
    assert Settings(exclude=("08:00-18:00",), timezone="Europe/Lisbon").excludes(moment)
    assert not Settings(exclude=("08:00-18:00",)).excludes(moment)


def test_the_allowance_is_of_a_calendar_month() -> None:
    last = datetime.datetime(2026, 1, 31, 23, 30, tzinfo=datetime.UTC).timestamp()
    assert not Settings().same_month(last, last + 3600)
    assert Settings(timezone="Asia/Tokyo").same_month(last, last + 3600)
