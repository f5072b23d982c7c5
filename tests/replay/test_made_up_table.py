"""The table that ships for trying a replay: made up, small, always the same, and there without any download."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from lynceus.policy.presets import preset
from lynceus.replay.campaign import Campaign, run_campaign
from lynceus.replay.job import job_path, load_job
from lynceus.replay.summary import summarise

NAME = "example/nightly-etl"


def test_the_table_is_what_its_script_writes_and_says_that_it_is_made_up() -> None:
    spec = job_path(NAME)
    table = spec.with_suffix(".csv")
    script = runpy.run_path(str(spec.with_name("make_nightly_etl.py")))
    assert script["TABLE"] == table
    assert table.read_text(encoding="utf-8") == script["table"]()
    assert table.stat().st_size < 10_000
    assert "made-up" in spec.read_text(encoding="utf-8")


def test_it_replays_without_a_folder_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LYNCEUS_DATA", str(tmp_path / "nowhere"))
    job = load_job(NAME)
    assert len(job.problem.space) == 168
    policies = (preset("lynceus"), preset("random"))
    replays = run_campaign(Campaign(job, policies, seeds=3))
    spent = [summarise(replays[at : at + 3], job.optimum.cost_usd).levels[-1].usd.p50 for at in (0, 3)]
    assert spent[0] < spent[1], "the example shows what a search with a model saves"
