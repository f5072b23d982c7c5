"""`lynceus token`: the secret is printed once, alone on standard output."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

Lynceus = Callable[..., tuple[int, str, str]]


def test_tokens_are_added_listed_and_revoked(lynceus: Lynceus, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LYNCEUS_USER", "ana")
    code, secret, told = lynceus("token", "add", "airflow", "--role", "runner", "--expires", "30d")
    assert code == 0
    assert re.fullmatch(r"lyn_[A-Za-z0-9_-]{43}\n", secret), "a script can take it: TOKEN=$(lynceus token add …)"
    assert "has the role runner until 20" in told
    assert secret.strip() not in told
    made = json.loads(lynceus("token", "add", "ci", "--role", "viewer", "--by", "bo", "-o", "json")[1])
    assert (made["role"], made["created_by"], made["expires_s"]) == ("viewer", "bo", None)
    code, shown, _ = lynceus("token", "list")
    assert code == 0
    assert all(word in shown for word in ("airflow", "runner", "ana", "never"))
    listed = lynceus("token", "list", "-o", "json")[1]
    first, second = json.loads(listed)
    assert first["expires_s"] == pytest.approx(first["created_s"] + 30 * 86400)
    assert second == {key: value for key, value in made.items() if key != "token"}
    for text in (shown, listed):
        assert secret.strip() not in text
        assert made["token"] not in text
    assert lynceus("token", "revoke", "airflow")[:2] == (0, "The token airflow is revoked.\n")
    assert [one["name"] for one in json.loads(lynceus("token", "list", "-o", "json")[1])] == ["ci"]
    told_audit = [(one["author"], one["kind"], one["subject"]) for one in json.loads(lynceus("audit", "-o", "json")[1])]
    assert told_audit == [("ana", "token", "airflow"), ("bo", "token", "ci"), ("ana", "token", "airflow")]
    assert "lyn_" not in lynceus("audit")[1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("add", "a b", "--role", "viewer"), "give up to 100 letters"),
        (("add", "ana", "--role", "boss"), "'boss' is not one of 'viewer', 'runner', 'admin'"),
        (("add", "ana", "--role", "viewer", "--expires", "soon"), "--expires is 'soon'"),
        (("revoke", "ana"), "'ana' is not in sqlite:///lynceus.db; known are: ci."),
        (("add", "ci", "--role", "admin"), "exists already"),
    ],
)
def test_mistakes_are_one_sentence(lynceus: Lynceus, here: Path, arguments: tuple[str, ...], message: str) -> None:
    lynceus("token", "add", "ci", "--role", "viewer")
    code, out, err = lynceus("token", *arguments)
    assert (code, out, err.count("\n"), message in err) == (2, "", 1, True), err


def test_an_empty_list_says_how_to_begin(lynceus: Lynceus, here: Path) -> None:
    lynceus("token", "add", "ci", "--role", "viewer")
    lynceus("token", "revoke", "ci")
    assert "lynceus token add NAME --role viewer" in lynceus("token", "list")[1]
