"""Looks at a study now and then and tells people what is new, once, in the background. A failing receiver never harms the study."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from lynceus.errors import LynceusError
from lynceus.job import Job
from lynceus.job.notices import MailSection
from lynceus.job.secrets import secret_value
from lynceus.notify.occasions import Occasion, occasions
from lynceus.notify.receivers import Apprise, Mail, Receiver, UndeliveredError, Webhook
from lynceus.study import Study

PAUSES_S = (1.0, 4.0)
"""Seconds before the second and the third try."""
PATIENCE_S = 20.0
"""How long a worker that ends waits for its last messages."""
_PORTS = {"none": 25, "starttls": 587, "tls": 465}
_log = logging.getLogger("lynceus.notify")


class Courier:
    """Tells receivers what there is to tell about a study."""

    def __init__(
        self,
        receivers: Sequence[Receiver],
        kinds: Sequence[str] = ("end", "pause", "budget"),
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._receivers, self._kinds, self._sleep = tuple(receivers), tuple(kinds), sleep
        self._told: set[str] = set()
        self._under_way: list[threading.Thread] = []

    def look(self, study: Study) -> None:
        """Tell what is new. Returns at once; whatever goes wrong is written down, never raised."""
        if not self._receivers:
            return
        try:
            for occasion in occasions(study):
                if occasion.kind in self._kinds and occasion.key not in self._told:
                    self._told.add(occasion.key)
                    if study.ledger.announced(occasion.key):
                        self._send(occasion)
        except LynceusError as error:
            _log.warning("%s: what is new could not be told: %s", study.name, error)

    def close(self, patience_s: float = PATIENCE_S) -> None:
        """Wait for messages under way, but not for ever."""
        until = time.monotonic() + patience_s
        for thread in self._under_way:
            thread.join(max(0.0, until - time.monotonic()))
        self._under_way.clear()

    def _send(self, occasion: Occasion) -> None:
        # A daemon: a receiver that answers slowly keeps no process from ending.
        thread = threading.Thread(target=self._deliver, args=(occasion,), name="lynceus-courier", daemon=True)
        self._under_way = [one for one in self._under_way if one.is_alive()] + [thread]
        thread.start()

    def _deliver(self, occasion: Occasion) -> None:
        for receiver in self._receivers:
            problem = self._tried(receiver, occasion)
            if problem:
                _log.warning("%s: %s was not reached: %s", occasion.facts["study"], receiver.name, problem)

    def _tried(self, receiver: Receiver, occasion: Occasion) -> str:
        """Why a receiver could not be reached; empty when it was."""
        problem = ""
        for pause_s in (0.0, *PAUSES_S):
            self._sleep(pause_s)
            try:
                receiver.tell(occasion)
                return ""
            except UndeliveredError as error:
                problem = str(error)
            except LynceusError as error:
                return str(error)
        return problem


def courier_of(job: Job, environment: Mapping[str, str] = os.environ) -> Courier:
    """The courier of a job file; a reference that leads nowhere is a mistake."""
    section = job.spec.notify
    if section is None:
        return Courier(())
    receivers: list[Receiver] = []
    for place, source in enumerate(section.webhook):
        url = secret_value(job, ("notify", "webhook", place), source, environment)
        receivers.append(Webhook(f"webhook {place + 1}", url))
    if section.mail is not None:
        receivers.append(_mail(job, section.mail, environment))
    for place, source in enumerate(section.apprise):
        url = secret_value(job, ("notify", "apprise", place), source, environment)
        receivers.append(Apprise(f"apprise {place + 1}", url))
    return Courier(receivers, section.on)


def _mail(job: Job, section: MailSection, environment: Mapping[str, str]) -> Mail:
    host, _, port = section.server.partition(":")
    here = host in ("localhost", "127.0.0.1")
    security = section.security or ("none" if here else "starttls")
    password = None
    if section.password is not None:
        password = secret_value(job, ("notify", "mail", "password"), section.password, environment)
    return Mail(
        tuple(section.to), section.sender, host, int(port or _PORTS[security]), security, section.user, password
    )
