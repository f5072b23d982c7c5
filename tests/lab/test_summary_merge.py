"""What a stored summary has of more seeds stays; everything else is new."""

from __future__ import annotations

from typing import Any

import pytest

from lynceus_lab.summary_merge import merged, settled


def summary(seeds: int, *claims: dict[str, Any], commit: str = "a") -> dict[str, Any]:
    table = [row("p", "", seeds)] if seeds else []
    return {
        "title": f"with {seeds}",
        "jobs": ["j"],
        "policies": ["p"],
        "variants": [""],
        "table": table,
        "claims": list(claims),
        "curves": [],
        "made": {"commit": [commit]},
    }


def row(policy: str, variant: str, seeds: int) -> dict[str, Any]:
    return {"job": "j", "policy": policy, "variant": variant, "seeds": seeds}


def claim(name: str, seeds: int, *, says: str = "it", setting: str | None = "s") -> dict[str, Any]:
    found = {"id": name, "says": says, "seeds": seeds, "ours": [seeds] * 3 if seeds else None, "published": "1"}
    return {**found, "note": f"note {seeds}", "readings": {}, **({"setting": setting} if setting else {})}


def by_variant(points: dict[str, dict[str, float]]) -> dict[str, Any]:
    """A figure with one panel: a policy's values by variant."""
    lines = [
        {"label": label, "x": list(of), "y": list(of.values()), "low": list(of.values()), "high": list(of.values())}
        for label, of in points.items()
    ]
    return {"title": "by budget", "kind": "by-variant", "panels": [{"title": "j", "lines": lines}]}


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


def test_a_campaign_of_a_further_policy_keeps_the_rows_of_the_others() -> None:
    further = summary(30) | {"policies": ["p", "q"], "table": [row("q", "", 30)]}
    found = merged(further, summary(100, commit="b"))
    assert found["policies"] == ["p", "q"]
    assert found["table"] == [row("p", "", 100), row("q", "", 30)]
    assert found["made"]["commit"] == ["a", "b"]


def test_a_stored_verdict_follows_what_its_set_up_is_known_to_be() -> None:
    def verdicts(differs: list[str]) -> tuple[str, str]:
        one = claim("one", 50) | {"verdict": "does not hold", "differs": differs}
        (found,) = settled(summary(50, one | {"readings": {"printed": {"verdict": "does not hold"}}}))["claims"]
        return found["verdict"], found["readings"]["printed"]["verdict"]

    assert verdicts([]) == ("does not hold", "does not hold")
    assert verdicts(["price"]) == ("not reproduced, in another set-up",) * 2


def test_a_campaign_for_some_rows_keeps_the_others_and_their_order() -> None:
    names = {"policies": ["p", "q"], "variants": ["8", "15"]}
    stored = summary(10) | names | {"table": [row("p", "8", 10), row("q", "8", 10), row("p", "15", 10)]}
    stored["curves"] = [by_variant({"p": {"8": 1.0, "15": 2.0}, "q": {"8": 3.0}})]
    new = summary(50) | names | {"table": [row("q", "8", 5), row("p", "15", 50), row("q", "15", 50)]}
    new["curves"] = [by_variant({"q": {"8": 3.5, "15": 5.0}, "p": {"15": 4.0}})]
    found = merged(new, stored)
    assert found["table"] == [row("p", "8", 10), row("q", "8", 10), row("p", "15", 50), row("q", "15", 50)]
    assert found["curves"] == [by_variant({"p": {"8": 1.0, "15": 4.0}, "q": {"8": 3.0, "15": 5.0}})]


def test_a_campaign_for_one_policy_renews_its_lines_alone() -> None:
    def bars(heights: dict[str, float]) -> dict[str, Any]:
        lines = [{"label": label, "x": [0], "y": [y]} for label, y in heights.items()]
        return {"title": "spend", "kind": "bars", "panels": [{"title": "j", "lines": lines}]}

    stored = summary(50)
    stored["table"] = [row("p", "", 50), row("q", "", 7)]
    stored["curves"] = [bars({"p": 1.0, "q": 2.0})]
    new = summary(50)
    new["table"] = [row("p", "", 10), row("q", "", 20)]
    new["curves"] = [bars({"q": 3.0, "p": 1.5})]
    for one in (stored, new):
        one["policies"] = ["p", "q"]
    assert merged(new, stored)["curves"] == [bars({"p": 1.0, "q": 3.0})]


def test_a_campaign_under_one_reading_keeps_the_others() -> None:
    def read(seeds: int, **readings: dict[str, Any]) -> dict[str, Any]:
        return claim("one", seeds) | {"readings": readings}

    older = {"ours": [1, 1, 1], "verdict": "holds"}
    stored = summary(10, read(10, printed=older, helpers=older, other=older))
    not_run = {"ours": None, "verdict": "not measured", "seeds": 0}
    printed, other = ({"ours": [2, 2, 2], "verdict": "holds", "seeds": seeds} for seeds in (50, 10))
    new = summary(50, read(50, printed=printed, helpers=not_run, other=other))
    (found,) = merged(new, stored)["claims"]
    assert found["seeds"] == 50
    assert found["readings"] == {"printed": printed, "helpers": {**older, "seeds": 10}, "other": other}
