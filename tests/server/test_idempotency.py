"""A repeated request takes effect once: after a lost response, on another server, after a server was killed."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from pathlib import Path
from uuid import uuid4

import pytest

from dashboards import JOB, Answer, Dashboard, dashboard, served
from lynceus.storage.sql.idempotency import KEPT_S, Once, ReusedKeyError
from lynceus.storage.sql.storage import Storage

Pair = tuple[Dashboard, Dashboard, str]


@pytest.fixture(scope="module")
def pair(postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two servers on one PostgreSQL storage, and its URL."""
    url = postgres.database(f"web-{uuid4().hex}")
    folder = tmp_path_factory.mktemp("pair")
    with served(url, folder) as one, served(url, folder) as two:
        yield one, two, url


def create(server: Dashboard, **changes: object) -> str:
    answer = server.post("studies", JOB | {"name": f"once-{uuid4().hex[:8]}"} | changes)
    assert answer.status == 201, answer.body
    return str(answer.json["name"])


def key(text: str | None = None) -> dict[str, str]:
    return {"Idempotency-Key": text or str(uuid4())}


def test_a_repeated_ask_gets_the_same_trial_from_either_server(pair: Pair) -> None:
    one, two, url = pair
    name, mine = create(one), key()
    first = one.post(f"studies/{name}/ask", {}, mine)
    again, elsewhere = one.post(f"studies/{name}/ask", {}, mine), two.post(f"studies/{name}/ask", {}, mine)
    assert first.json == again.json == elsewhere.json
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == elsewhere.headers["idempotency-replayed"] == "true"
    other = two.post(f"studies/{name}/ask", {}, key())
    assert other.json["trial"]["number"] == first.json["trial"]["number"] + 1
    with Storage(url) as storage:
        assert [trial.number for trial in storage.trials(name)] == [0, 1]


def test_a_repeated_tell_charges_once_and_one_with_another_body_is_refused(pair: Pair) -> None:
    one, two, url = pair
    name, mine = create(one), key()
    one.post(f"studies/{name}/ask")
    path = f"studies/{name}/trials/0/tell"
    first, again = one.post(path, {"runtime": 30}, mine), two.post(path, {"runtime": 30}, mine)
    assert first.status == again.status == 200
    assert first.json == again.json
    reformatted = two.post(path, b'{ "metrics" : {}, "runtime": 30.0 }', mine)
    assert reformatted.json == first.json, "the same request in another format"
    other = two.post(path, {"runtime": 31}, mine)
    assert (other.status, "came with another request" in other.sentence) == (422, True)
    elsewhere = one.post(f"studies/{name}/ask", {}, mine)
    assert elsewhere.status == 422
    with Storage(url) as storage:
        (trial,) = storage.trials(name)
        assert [event.kind for event in storage.events(name)].count("settled") == 1
    assert trial.outcome is not None
    assert trial.outcome.seconds == 30
    assert one.get(f"studies/{name}").json["spent_usd"] == pytest.approx(trial.outcome.charged_usd)


def test_a_repeated_creation_and_a_repeated_resume(pair: Pair) -> None:
    one, two, _ = pair
    job, mine = JOB | {"name": f"once-{uuid4().hex[:8]}"}, key()
    answers = [server.post("studies", job, mine) for server in (one, two, one)]
    assert [answer.status for answer in answers] == [201, 201, 201]
    assert one.post("studies", job, key()).status == 409
    more = key()
    for server in (one, two):
        answer = server.post(f"studies/{job['name']}/resume", {"add_budget": "7 USD"}, more)
        assert answer.json == {"budget_usd": 507.0, "constraints": ["time <= 10m"]}


def test_the_same_request_at_the_same_moment_to_both_servers(pair: Pair) -> None:
    one, two, url = pair
    name = create(one)
    with ThreadPoolExecutor(8) as many:
        for _ in range(6):
            mine, together = key(), threading.Barrier(8)

            def ask(server: Dashboard, mine: dict[str, str] = mine, together: threading.Barrier = together) -> Answer:
                together.wait()
                return server.post(f"studies/{name}/ask", {}, mine)

            answers = list(many.map(ask, [one, two] * 4))
            assert [answer.status for answer in answers] == [200] * 8
            assert len({answer.json["trial"]["number"] for answer in answers}) == 1
            assert sum("idempotency-replayed" not in answer.headers for answer in answers) == 1
    with Storage(url) as storage:
        assert len(storage.trials(name)) == 6
    job, mine = JOB | {"name": f"once-{uuid4().hex[:8]}"}, key()
    with ThreadPoolExecutor(8) as many:
        created = list(many.map(lambda server: server.post("studies", job, mine), [one, two] * 4))
    assert {answer.status for answer in created} == {201}


def test_answers_without_effect_are_not_kept(pair: Pair) -> None:
    one, _, _ = pair
    name, mine = create(one, budget={"cost": "500 USD", "max_trials": 1}), key()
    one.post(f"studies/{name}/ask")
    assert one.post(f"studies/{name}/ask", {}, mine).json["wait"] is True
    one.post(f"studies/{name}/trials/0/tell", {"runtime": 9})
    assert one.post(f"studies/{name}/ask", {}, mine).json["wait"] is False


def test_a_killed_server_loses_and_repeats_nothing(tmp_path: Path) -> None:
    """Requests race with a kill -9; all of them are repeated on the next server with their keys."""
    url = f"sqlite:///{tmp_path}/s.db"
    keys = [key() for _ in range(40)]
    answered: dict[int, int] = {}
    with dashboard(url, tmp_path) as first:
        space = {"n": list(range(1, 101)), "mode": ["a"]}
        assert first.post("studies", JOB | {"space": space, "price": "0.001 * n"}).status == 201

        def ask(place: int) -> None:
            try:
                answered[place] = first.post("studies/toy/ask", {}, keys[place]).json["trial"]["number"]
            except (OSError, HTTPException):
                return  # the response was lost, or a part of it
            if len(answered) >= 8:
                first.kill()

        with ThreadPoolExecutor(4) as many:
            list(many.map(ask, range(40)))
    assert 8 <= len(answered) < 40
    with dashboard(url, tmp_path) as second:
        numbers = {}
        for place in range(40):
            numbers[place] = second.post("studies/toy/ask", {}, keys[place]).json["trial"]["number"]
    assert answered.items() <= numbers.items(), "a client gets the same trial again"
    assert sorted(numbers.values()) == list(range(40))
    with Storage(url) as storage:
        assert len(storage.trials("toy")) == 40


@pytest.mark.parametrize("text", ["", "x" * 201])
def test_invalid_keys_are_refused(pair: Pair, text: str) -> None:
    one, _, _ = pair
    assert one.post("studies/none/ask", {}, {"Idempotency-Key": text}).status == 422


def test_answers_belong_to_one_request_and_expire_after_a_month(tmp_path: Path) -> None:
    now = [1000.0]
    with Storage(f"sqlite:///{tmp_path}/s.db", now=lambda: now[0]) as storage:

        def make(name: str, once: Once) -> None:
            storage.create_study(name, document={}, fingerprint="f", policy={}, once=once)

        make("a", Once("key", "digest"))
        assert storage.given_answer(Once("key", "digest")) == {"name": "a"}
        with pytest.raises(ReusedKeyError, match="another request before"):
            storage.given_answer(Once("key", "other"))
        now[0] += KEPT_S + 1
        make("b", Once("key-2", "digest"))
        assert storage.given_answer(Once("key", "digest")) is None
        assert storage.given_answer(Once("key-2", "digest")) == {"name": "b"}
