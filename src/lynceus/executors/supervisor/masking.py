"""Masking secrets in what a job writes, whichever way it writes them."""

from __future__ import annotations

import binascii
import json
from collections.abc import Iterable

MASK = b"***"
SHORTEST_SECRET = 6
"""Masking shorter secrets would mask ordinary text; the same holds for single lines of a secret."""
_BASE64_START = (0, 2, 3)
"""The first letter of base64 that depends on a text alone, if 0, 1 or 2 letters of something else precede it in its group of 3."""
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class Secrets:
    """Secrets in every form in which they are masked: as they are, each line by itself, and encoded for JSON, URLs and base64."""

    def __init__(self, secrets: Iterable[bytes] = ()) -> None:
        found = {form for secret in secrets for form in _forms(secret) if len(form) >= SHORTEST_SECRET}
        self.forms = sorted(found, key=lambda form: (-len(form), form))
        """The longest first, because it may contain others."""

    def masked(self, data: bytes) -> bytes:
        """The data with all secrets replaced."""
        for form in self.forms:
            if form in data:
                data = data.replace(form, MASK)
        return data

    def masked_text(self, text: str) -> str:
        """The same for text; characters that UTF-8 cannot encode are replaced."""
        return self.masked(text.encode("utf-8", "replace")).decode("utf-8", "replace") if self.forms else text

    def unsettled(self, data: bytes) -> int:
        """How many bytes at the end to keep until more arrive: they may be the start of a secret.

        A secret that ends inside these bytes is kept as a whole, unless ever more of them overlap.
        """
        keep = self._begun(data)
        longest = 4 * len(self.forms[0]) if self.forms else 0
        while 0 < keep <= longest:
            border = len(data) - keep
            spans = ((data.find(one, max(border - len(one) + 1, 0), border + len(one) - 1)) for one in self.forms)
            start = min((at for at in spans if 0 <= at < border), default=None)
            if start is None:
                break
            keep = len(data) - start
        return keep

    def _begun(self, data: bytes) -> int:
        longest = 0
        for form in self.forms:
            tail = data[max(len(data) - len(form) + 1, 0) :]
            at = tail.find(form[:1])
            while at >= 0 and len(tail) - at > longest:
                if form.startswith(tail[at:]):
                    longest = len(tail) - at
                at = tail.find(form[:1], at + 1)
        return longest


def _forms(secret: bytes) -> set[bytes]:
    lines = {line.strip() for line in secret.splitlines()}
    found = {secret, secret.strip()} | lines
    for one in list(found):
        if len(one) >= SHORTEST_SECRET:
            text = one.decode("utf-8", "surrogateescape")
            found |= {json.dumps(text)[1:-1].encode(), _json_form(text), *_url_forms(one), *_base64_forms(one)}
    return found


def _json_form(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogateescape")


def _url_forms(one: bytes) -> list[bytes]:
    """As part of a query, of a path (a slash stays), and of a form (a space is a plus)."""
    found = []
    for digits in (b"%%%02X", b"%%%02x"):
        whole = b"".join(bytes([byte]) if byte in _UNRESERVED else digits % byte for byte in one)
        path = whole.replace(digits % ord("/"), b"/")
        found += [form for each in (whole, path) for form in (each, each.replace(b"%20", b"+"))]
    return found


def _base64_forms(one: bytes) -> list[bytes]:
    """All that a secret is in base64, whatever stands before it (a user name and a colon, for example) and after it."""
    found = []
    for before in range(3):
        whole = binascii.b2a_base64(bytes(before) + one, newline=False)
        inner = whole[_BASE64_START[before] : (before + len(one)) * 8 // 6]
        found += [inner, inner.replace(b"+", b"-").replace(b"/", b"_")]
    return found
