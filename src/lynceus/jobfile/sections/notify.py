"""The section `notify`: messages when a study ends, pauses, or has used most of its budget."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, get_args

from pydantic import Field, field_validator

from lynceus.jobfile.sections.values import SecretSource, as_list
from lynceus.problem.fields import Section

_ADDRESS = re.compile(r"[^@\s<>,;:\"'\\]+@[^@\s<>,;:\"'\\]+", re.ASCII)

Kind = Literal["end", "pause", "budget", "change", "drift", "late", "suggestion"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""What users are notified of."""


class MailSection(Section):
    """Mail over SMTP."""

    to: list[str] = Field(min_length=1, description="addresses to send to")
    sender: str = Field(default="lynceus@localhost", description="the address that mail comes from")
    server: str = Field(default="localhost", description="the mail server: a name, or name:port")
    security: Literal["none", "starttls", "tls"] | None = Field(
        default=None, description="starttls by default, none on this machine"
    )
    user: str | None = Field(default=None, description="the name to sign in with")
    password: SecretSource | None = Field(default=None, description="env:NAME or file:PATH, never the value")

    @field_validator("to", mode="before")
    @classmethod
    def _several(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @field_validator("to", "sender")
    @classmethod
    def _addresses(cls, value: str | list[str]) -> str | list[str]:
        for one in as_list(value):
            if not _ADDRESS.fullmatch(one):
                raise ValueError(f"{one!r} is not a mail address; write name@host.")
        return value

    @field_validator("server")
    @classmethod
    def _server(cls, value: str) -> str:
        if not re.fullmatch(r"[A-Za-z0-9._-]+(:\d{1,5})?", value):
            raise ValueError(f"{value!r} is not a mail server; write a name such as mail.example.org, or name:port.")
        return value


class NotifySection(Section):
    """Who is notified. Addresses that may contain a secret are given by reference only."""

    webhook: list[SecretSource] = Field(
        default=[], description="addresses that receive a JSON message by POST: env:NAME or file:PATH"
    )
    mail: MailSection | None = Field(default=None, description="who receives mail")
    apprise: list[SecretSource] = Field(
        default=[], description="addresses of the package apprise (chats, phones): env:NAME or file:PATH"
    )
    on: list[Kind] = Field(
        default=list(KINDS),
        description="when: the study ends, pauses, has used 80 % of its budget; the job in production was changed, its time "
        "drifts, its next run may be late, there is something to change",
    )

    @field_validator("webhook", "apprise", mode="before")
    @classmethod
    def _several(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    def references(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        """Every reference to a secret with its path in the job file."""
        for place, source in enumerate(self.webhook):
            yield ("notify", "webhook", place), source
        if self.mail is not None and self.mail.password is not None:
            yield ("notify", "mail", "password"), self.mail.password
        for place, source in enumerate(self.apprise):
            yield ("notify", "apprise", place), source
