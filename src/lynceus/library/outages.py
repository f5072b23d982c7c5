"""What does not answer the worker of a study, kept beside the study so that others read it, too."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from lynceus.executors.interface import Outage
from lynceus.storage.sql.rows import StudyRecord
from lynceus.storage.sql.storage import Storage, outage_setting
from lynceus.trial.text import clean_line

if TYPE_CHECKING:
    from lynceus.library.open_study import OpenStudy  # it loads policies, which `lynceus status` does without

_KNOWN_S = 60.0
"""What a worker noted counts while it sends heartbeats, and for so many seconds after the last one."""


def note_outage(one: OpenStudy, outage: Outage | None) -> None:
    """The executor of a study does not answer; None: it does."""
    noted = None if outage is None else {"detail": clean_line(outage.detail), "since_s": outage.since_s}
    name, text = outage_setting(one.record.id), json.dumps(noted)
    if (one.storage.setting(name) or "null") != text:
        one.storage.set_setting(name, text)


def noted_outage(storage: Storage, record: StudyRecord) -> str | None:
    """What a worker of the study noted, as a sentence; None when its executor answers, or nobody watches it."""
    noted = json.loads(storage.setting(outage_setting(record.id)) or "null")
    if noted is None or record.seen_s is None or time.time() - record.seen_s > _KNOWN_S:
        return None
    since = time.strftime("%H:%M:%S", time.localtime(noted["since_s"]))
    return f"its executor has not answered since {since}: {noted['detail']}"
