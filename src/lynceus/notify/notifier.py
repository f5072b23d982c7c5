"""The notifier of a study: sends each event once, in the background, and tries again when a receiver fails."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from lynceus.errors import LynceusError
from lynceus.jobfile.job import Job
from lynceus.jobfile.secrets import secret_value
from lynceus.jobfile.sections.notify import KINDS, MailSection
from lynceus.notify.events import Event, events
from lynceus.notify.receivers import Apprise, Mail, Receiver, UndeliveredError, Webhook
from lynceus.study.study import Study

PAUSES_S = (1.0, 4.0)
"""Seconds before the second and the third attempt."""
PATIENCE_S = 20.0
"""Seconds that a worker waits for its last messages before it exits."""
_PORTS = {"none": 25, "starttls": 587, "tls": 465}
_log = logging.getLogger("lynceus.notify")


class Notifier:
    """Sends the events of a study to receivers."""

    def __init__(
        self,
        receivers: Sequence[Receiver],
        kinds: Sequence[str] = KINDS,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._receivers, self._kinds, self._sleep = tuple(receivers), tuple(kinds), sleep
        self._sent: set[str] = set()
        self._threads: list[threading.Thread] = []

    def notify(self, study: Study) -> None:
        """Send new events. Returns at once; errors are logged, never raised."""
        if self._receivers:
            self.send_new(study.name, lambda: events(study), study.journal.announced)

    def send_new(self, name: str, found: Callable[[], Sequence[Event]], announced: Callable[[str], bool]) -> None:
        """The same for the events of whatever has this name; `announced` is false for those that were sent before."""
        if not self._receivers:
            return
        try:
            for event in found():
                if event.kind in self._kinds and event.key not in self._sent:
                    self._sent.add(event.key)
                    if announced(event.key):
                        self._send(event)
        except LynceusError as error:
            _log.warning("%s: new events could not be sent: %s", name, error)

    def close(self, patience_s: float = PATIENCE_S) -> None:
        """Wait for messages that are being sent, up to `patience_s` seconds."""
        deadline = time.monotonic() + patience_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        self._threads.clear()

    def _send(self, event: Event) -> None:
        # A daemon thread: a slow receiver must not keep the process from exiting.
        thread = threading.Thread(target=self._deliver, args=(event,), name="lynceus-notifier", daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()

    def _deliver(self, event: Event) -> None:
        for receiver in self._receivers:
            error = self._attempt(receiver, event)
            if error:
                _log.warning(
                    "%s: %s was not reached: %s", event.facts.get("study", event.facts.get("job")), receiver.name, error
                )

    def _attempt(self, receiver: Receiver, event: Event) -> str:
        """Send an event, in several attempts; returns why it failed, or an empty text."""
        last_error = ""
        for pause_s in (0.0, *PAUSES_S):
            self._sleep(pause_s)
            try:
                receiver.send(event)
                return ""
            except UndeliveredError as error:
                last_error = str(error)
            except LynceusError as error:
                return str(error)
        return last_error


def notifier_of(job: Job, environment: Mapping[str, str] = os.environ) -> Notifier:
    """The notifier of a job file; a missing secret is an error."""
    section = job.spec.notify
    if section is None:
        return Notifier(())
    receivers: list[Receiver] = []
    for place, source in enumerate(section.webhook):
        url = secret_value(job, ("notify", "webhook", place), source, environment)
        receivers.append(Webhook(f"webhook {place + 1}", url))
    if section.mail is not None:
        receivers.append(_mail(job, section.mail, environment))
    for place, source in enumerate(section.apprise):
        url = secret_value(job, ("notify", "apprise", place), source, environment)
        receivers.append(Apprise(f"apprise {place + 1}", url))
    return Notifier(receivers, section.on)


def _mail(job: Job, section: MailSection, environment: Mapping[str, str]) -> Mail:
    host, _, port = section.server.partition(":")
    local = host in ("localhost", "127.0.0.1")
    security = section.security or ("none" if local else "starttls")
    password = None
    if section.password is not None:
        password = secret_value(job, ("notify", "mail", "password"), section.password, environment)
    return Mail(
        tuple(section.to), section.sender, host, int(port or _PORTS[security]), security, section.user, password
    )
