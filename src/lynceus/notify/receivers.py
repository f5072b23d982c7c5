"""Ways to tell people. A receiver raises `UndeliveredError` with a reason in which no address and no secret stands."""

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
from lynceus.notify.occasions import Occasion

TIMEOUT_S = 10.0
"""How long a receiver may take."""


class UndeliveredError(Exception):
    """The message did not arrive; the reason names no address and no secret."""


class Receiver(Protocol):
    """Somebody who is told."""

    @property
    def name(self) -> str:
        """Without its address: `webhook 1`."""

    def tell(self, occasion: Occasion) -> None:
        """Deliver, or raise `UndeliveredError`."""


@dataclass(frozen=True)
class Webhook:
    """A POST of a JSON object. Its field `text` is what chats such as Slack and Mattermost show."""

    name: str
    url: str = field(repr=False)

    def tell(self, occasion: Occasion) -> None:
        """Deliver; only an answer that means success counts."""
        headers = {"Content-Type": "application/json", "User-Agent": "lynceus"}
        try:
            request = urllib.request.Request(self.url, json.dumps(occasion.facts).encode(), headers, method="POST")
            if request.type not in ("http", "https"):
                raise UndeliveredError("its address does not begin with http:// or https://")
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_S):
                return
        except urllib.error.HTTPError as error:
            with error:
                raise UndeliveredError(f"it answered {error.code}") from None
        except (OSError, ValueError) as error:
            raise UndeliveredError(_kind(error)) from None


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *given: Any) -> None:
        """An address with a secret in it goes to nobody else."""


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

    def tell(self, occasion: Occasion) -> None:
        """Deliver to the mail server."""
        message = EmailMessage()
        message["Subject"] = " ".join(occasion.title.split())
        message["From"], message["To"] = self.sender, ", ".join(self.to)
        message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain="lynceus.invalid")
        message.set_content(occasion.text + "\n")
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
            raise UndeliveredError(_kind(error)) from None

    def _connected(self) -> smtplib.SMTP:
        if self.security == "tls":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(self.host, self.port, timeout=TIMEOUT_S, context=context)
        return smtplib.SMTP(self.host, self.port, timeout=TIMEOUT_S)


@dataclass(frozen=True)
class Apprise:
    """Whatever the package apprise reaches: chats, phones, desktops."""

    name: str
    url: str = field(repr=False)

    def tell(self, occasion: Occasion) -> None:
        """Deliver."""
        try:
            import apprise
        except ImportError:
            raise MissingExtraError("Messages through apprise", "notify") from None
        # It writes addresses into its log.
        logging.getLogger("apprise").disabled = True
        try:
            messenger = apprise.Apprise()
            if not messenger.add(self.url):
                raise UndeliveredError("apprise does not understand its address")
            if not messenger.notify(title=occasion.title, body=occasion.text):
                raise UndeliveredError("apprise could not deliver it")
        except UndeliveredError:
            raise
        except Exception as error:  # plugins of a hundred services: whatever they raise, the study goes on
            raise UndeliveredError(_kind(error)) from None


def _kind(error: BaseException) -> str:
    """What went wrong, without the text of the error: that may hold the address."""
    reason = getattr(error, "reason", None)
    inner = reason if isinstance(reason, OSError) else error
    text = inner.strerror if isinstance(inner, OSError) and inner.strerror else type(inner).__name__
    return str(text)
