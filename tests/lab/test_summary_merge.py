"""What a stored summary has of more seeds stays; everything else is new."""

from __future__ import annotations

from typing import Any

import pytest

from lynceus_lab.summary_merge import merged


def summary(seeds: int, *claims: dict[str, Any], commit: str = "a") -> dict[str, Any]:
    table = [{"policy": "p", "seeds": seeds}] if seeds else []
    return {
        "title": f"with {seeds}",
        "policies": ["p"],
        "variants": [""],
        "table": table,
        "claims": list(claims),
        "made": {"commit": [commit]},
    }


def claim(name: str, seeds: int, *, says: str = "it", setting: str | None = "s") -> dict[str, Any]:
    found = {"id": name, "says": says, "seeds": seeds, "ours": [seeds] * 3 if seeds else None, "published": "1"}
    return {**found, "note": f"note {seeds}", **({"setting": setting} if setting else {})}


def test_more_seeds_stay_and_what_is_missing_comes() -> None:
    stored = summary(100, claim("old", 100, setting=None), claim("pooled", 0, setting=None), commit="b")
    found = merged(summary(10, claim("old", 10), claim("pooled", 10)), stored)
    assert [(one["id"], one["seeds"], one["note"]) for one in found["claims"]] == [
        ("old", 100, "note 10"),
        ("pooled", 10, "note 10"),
    ]
    assert found["table"] == stored["table"]
    assert found["title"] == "with 10"
    assert found["made"]["commit"] == ["a", "b"]


@pytest.mark.parametrize("change", [{"says": "something else"}, {"setting": "another"}])
def test_a_claim_in_another_setting_does_not_stay(change: dict[str, str]) -> None:
    stored = summary(100, claim("one", 100, **change))
    assert merged(summary(10, claim("one", 10)), stored)["claims"][0]["seeds"] == 10


def test_the_new_summary_wins_with_as_many_seeds_or_other_policies() -> None:
    new = summary(10, claim("one", 10))
    assert merged(new, summary(10, claim("one", 10), commit="b")) == new
    assert merged(new, None) == new
    other = summary(100, claim("one", 5), commit="b") | {"policies": ["q"]}
    assert merged(new, other) == new
