"""Days and hours at which nothing is tried: `sat`, `mon-fri 08:00-18:00`, `2026-12-24`, `22:00-06:00`."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from lynceus.errors import InputError

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_WEEKDAYS = re.compile(r"(mon|tue|wed|thu|fri|sat|sun)[a-z]*(?:-(mon|tue|wed|thu|fri|sat|sun)[a-z]*)?", re.IGNORECASE)
_HOURS = re.compile(r"(\d{1,2}):(\d\d)-(\d{1,2}):(\d\d)")
_DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class ExcludedTime:
    """Some hours of some days.

    >>> nights = ExcludedTime.parse("fri-sun 22:00-06:00")
    >>> [nights.contains(datetime.datetime(2026, 11, day, hour)) for day, hour in ((20, 23), (23, 5), (20, 5), (21, 12))]
    [True, True, False, False]
    """

    weekdays: frozenset[int] = frozenset(range(7))
    """Days of the week on which it begins, 0 for Monday."""
    date: datetime.date | None = None
    """The only day on which it begins; None: every week."""
    start_minute: int = 0
    """Minutes since midnight."""
    end_minute: int = _DAY_MINUTES
    """Minutes since midnight; smaller than the start: on the next day."""

    @classmethod
    def parse(cls, text: str, where: str = "exclude") -> ExcludedTime:
        """Read days, hours or both, such as `sat`, `mon-fri 08:00-18:00`, `2026-12-24`, `22:00-06:00`."""
        words = text.split()
        weekdays, date, hours = frozenset(range(7)), None, (0, _DAY_MINUTES)
        for place, word in enumerate(words):
            if place == 0 and (days := _WEEKDAYS.fullmatch(word)) is not None:
                first = _DAYS.index(days[1].lower())
                last = _DAYS.index((days[2] or days[1]).lower())
                weekdays = frozenset((first + more) % 7 for more in range((last - first) % 7 + 1))
            elif place == 0 and (found := _date(word)) is not None:
                date = found
            elif place == len(words) - 1 and (found_hours := _hours(word)) is not None:
                hours = found_hours
            else:
                words = []
                break
        if not words:
            raise InputError(
                f"{where}: got {text!r}; give days, hours or both, such as 'sat', '2026-12-24', '22:00-06:00' or 'mon-fri 08:00-18:00'."
            )
        return cls(weekdays, date, *hours)

    def contains(self, local: datetime.datetime) -> bool:
        """Whether this moment of the job's own time zone is excluded."""
        minute = local.hour * 60 + local.minute
        today, yesterday = local.date(), local.date() - datetime.timedelta(days=1)
        if self.start_minute < self.end_minute:
            return self._begins(today) and self.start_minute <= minute < self.end_minute
        return (self._begins(today) and minute >= self.start_minute) or (
            self._begins(yesterday) and minute < self.end_minute
        )

    def _begins(self, day: datetime.date) -> bool:
        return day == self.date if self.date is not None else day.weekday() in self.weekdays


def local_time(at_s: float, timezone: str) -> datetime.datetime:
    """Seconds since the epoch as the date and time of a time zone."""
    return datetime.datetime.fromtimestamp(at_s, zone(timezone))


def zone(name: str, where: str = "timezone") -> ZoneInfo:
    """The time zone of a name such as `Europe/Lisbon`."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(
            f"{where}: got {name!r}; give a name of the time zone database, such as 'UTC' or 'Europe/Lisbon'."
        ) from None


def _date(word: str) -> datetime.date | None:
    try:
        return datetime.date.fromisoformat(word) if "-" in word else None
    except ValueError:
        return None


def _hours(word: str) -> tuple[int, int] | None:
    found = _HOURS.fullmatch(word)
    if found is None:
        return None
    start, end = int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])
    minutes_valid = int(found[2]) < 60 and int(found[4]) < 60
    return (start, end) if minutes_valid and start < _DAY_MINUTES and end <= _DAY_MINUTES and start != end else None
