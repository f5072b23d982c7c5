"""Receivers of notifications. Their errors contain no address and no secret."""

from __future__ import annotations

import json
import logging
import smtplib
import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Any, Protocol

from lynceus.errors import MissingExtraError
from lynceus.notify.events import Event

TIMEOUT_S = 10.0
"""Seconds that a receiver may take."""


class UndeliveredError(Exception):
    """The message was not delivered; the reason contains no address and no secret."""


class Receiver(Protocol):
    """A destination of notifications."""

    @property
    def name(self) -> str:
        """A name without the address: `webhook 1`."""

    def send(self, event: Event) -> None:
        """Deliver, or raise `UndeliveredError`."""


@dataclass(frozen=True)
class Webhook:
    """Sends a JSON object with POST. Chats such as Slack and Mattermost show its field `text`."""

    name: str
    url: str = field(repr=False)

    def send(self, event: Event) -> None:
        """Deliver; any status other than success is an error."""
        headers = {"Content-Type": "application/json", "User-Agent": "lynceus"}
        try:
            request = urllib.request.Request(self.url, json.dumps(event.facts).encode(), headers, method="POST")
            if request.type not in ("http", "https"):
                raise UndeliveredError("the address does not begin with http:// or https://")
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S):
                return
        except urllib.error.HTTPError as error:
            with error:
                raise UndeliveredError(f"the server answered {error.code}") from None
        except (OSError, ValueError) as error:
            raise UndeliveredError(_describe(error)) from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *given: Any) -> None:
        """Do not follow: the address may contain a secret."""


@dataclass(frozen=True)
class Mail:
    """A mail over SMTP."""

    to: tuple[str, ...]
    sender: str
    host: str
    port: int
    security: str
    """`none`, `starttls` or `tls`."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    name: str = "mail"

    def send(self, event: Event) -> None:
        """Deliver to the mail server."""
        message = EmailMessage()
        message["Subject"] = event.title
        message["From"], message["To"] = self.sender, ", ".join(self.to)
        message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain="lynceus.invalid")
        message.set_content(event.text + "\n")
        try:
            with self._connected() as server:
                if self.security == "starttls":
                    server.starttls(context=ssl.create_default_context())
                if self.user is not None:
                    server.login(self.user, self.password or "")
                server.send_message(message)
        except smtplib.SMTPResponseException as error:
            raise UndeliveredError(f"the mail server answered {error.smtp_code}") from None
        except (OSError, smtplib.SMTPException, ValueError) as error:
            raise UndeliveredError(_describe(error)) from None

    def _connected(self) -> smtplib.SMTP:
        if self.security == "tls":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(self.host, self.port, timeout=TIMEOUT_S, context=context)
        return smtplib.SMTP(self.host, self.port, timeout=TIMEOUT_S)


@dataclass(frozen=True)
class Apprise:
    """Any service that the package apprise supports: chats, phones, desktops."""

    name: str
    url: str = field(repr=False)

    def send(self, event: Event) -> None:
        """Deliver."""
        try:
            import apprise
        except ImportError:
            raise MissingExtraError("Messages through apprise", "notify") from None
        # apprise writes addresses into its log.
        logging.getLogger("apprise").disabled = True
        try:
            messenger = apprise.Apprise()
            if not messenger.add(self.url):
                raise UndeliveredError("apprise does not know this kind of address")
            if not messenger.notify(title=event.title, body=event.text):
                raise UndeliveredError("apprise could not deliver it")
        except UndeliveredError:
            raise
        except Exception as error:  # plugins of a hundred services may raise anything
            raise UndeliveredError(_describe(error)) from None


def _describe(error: BaseException) -> str:
    """What went wrong, without the text of the error, which may contain the address."""
    reason = getattr(error, "reason", None)
    inner = reason if isinstance(reason, OSError) else error
    text = inner.strerror if isinstance(inner, OSError) and inner.strerror else type(inner).__name__
    return str(text)
