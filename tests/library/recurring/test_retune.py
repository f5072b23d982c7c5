"""A search again for a recurring job is paid by those who pay for the job, whoever starts it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lynceus.jobfile.job import Job
from lynceus.jobfile.prepared_study import prepare
from lynceus.library.open_study import create_or_open
from lynceus.library.recurring.recurring_job import adopt_job
from lynceus.library.recurring.retune import finish_retune, start_retune
from lynceus.storage.sql.budgets import BudgetStore
from lynceus.storage.sql.jobs import JobStore
from lynceus.storage.sql.storage import Storage
from lynceus.trial.shared_budget import Account, Payer

FORECASTS, ANA, BO = (Account.parse(text) for text in ("project:forecasts", "owner:ana", "owner:bo"))
JOB = """\
name: search
project: forecasts
run: "true"
space: {nodes: [1, 2, 4]}
price: 36.0 * nodes
constraints: ["runtime <= 1m"]
budget: {cost: 100 USD}
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobStore:
    """Ana has searched and adopted; from then on Bo works here."""
    monkeypatch.setenv("LYNCEUS_USER", "ana")
    storage = Storage(f"sqlite:///{tmp_path}/s.db")
    one = create_or_open(prepare(Job.parse(JOB, tmp_path)), storage.url)
    one.study.add_trials([({"nodes": nodes}, 40.0 / nodes, {}) for nodes in (1, 2, 4)])
    one.storage.close()
    adopt_job("nightly", source="search", params={"nodes": 4}, storage=storage, by="ana")
    monkeypatch.setenv("LYNCEUS_USER", "bo")
    return JobStore(storage)


def test_those_who_pay_for_the_job_pay_for_its_search(store: JobStore) -> None:
    budgets = BudgetStore(store.storage)
    for account in (FORECASTS, ANA, BO):
        budgets.set(account, 50.0, by="boss")
    assert store.load("nightly").payer == Payer("forecasts", "ana")
    one = start_retune(store, "nightly", budget_usd=5.0, by="bo")
    assert store.storage.load_study(one.name).payer == Payer("forecasts", "ana")
    trial = one.study.ask()
    assert trial is not None
    used = {str(found.account): found.reserved_usd for found in budgets.all()}
    assert used["project:forecasts"] == used["owner:ana"] == pytest.approx(trial.max_charge_usd) != 0
    assert used["owner:bo"] == 0, "who starts it does not pay"
    assert store.load("nightly").payer == Payer("forecasts", "ana"), "the job is still theirs"


def test_a_search_without_shared_money_pauses_before_its_first_trial(store: JobStore) -> None:
    BudgetStore(store.storage).set(ANA, 0.0, by="boss")
    one = start_retune(store, "nightly", budget_usd=5.0, by="bo")
    assert one.study.ask() is None
    record = store.storage.load_study(one.name)
    assert (record.state, record.trials) == ("PAUSED", 0)
    assert "lynceus budget set owner:ana" in str(one.study.reason)


@pytest.mark.parametrize(
    ("former_s", "found_s", "adopted"),
    [
        (100.0, (98.5, 101.0, 99.0), False),  # within the noise of the runs
        (100.0, (50.0, 51.0, 49.5), True),
    ],
)
def test_an_answer_is_adopted_only_if_its_saving_is_no_noise(
    tmp_path: Path, former_s: float, found_s: tuple[float, ...], adopted: bool
) -> None:
    storage = Storage(f"sqlite:///{tmp_path}/s.db")
    text = JOB.replace("space: {nodes: [1, 2, 4]}", "space: {queue: [a, b]}").replace("36.0 * nodes", "36.0")
    text = text.replace("1m", "10m")
    one = create_or_open(prepare(Job.parse(text, tmp_path)), storage.url)
    one.study.add_trials([({"queue": "a"}, former_s * share, {}) for share in (0.97, 1.0, 1.04)])
    one.storage.close()
    job = adopt_job("nightly", source="search", params={"queue": "a"}, storage=storage, by="ana")
    job.set_mode("apply")
    job.set(allowance_usd=1000.0)
    for number in range(12):
        job.record(former_s * (0.97 + 0.01 * (5 * number % 7)), run_id=str(number))
    store = JobStore(storage)
    search = start_retune(store, "nightly", budget_usd=50.0, by="bo")
    search.study.add_trials([({"queue": "b"}, seconds, {}) for seconds in found_s])
    search.study.stop()
    found = search.study.recommend()
    assert found is not None
    assert found.params == {"queue": "b"}, "it is what the search would answer"
    assert finish_retune(store, "nightly", search.name)
    assert (job.config().params == {"queue": "b"}) is adopted
    assert store.load("nightly").record.changes[-1].evidence["study"] == search.name
    assert not finish_retune(store, "nightly", search.name), "once"
