"""Several clients at once on two servers of one PostgreSQL storage: no trial is lost, repeated or charged twice.

`benchmarks/web.py` measures how fast it is.
"""

import random
import threading
import time
from pathlib import Path
from uuid import uuid4

import pytest

from dashboards import JOB, WRITE, served
from lynceus.client.http import Http
from lynceus.client.remote import RemoteStudy
from lynceus.storage.sql.storage import Storage

CLIENTS, SECONDS = 8, 5.0


def test_concurrent_clients_lose_and_repeat_nothing(postgres, tmp_path: Path) -> None:
    url = postgres.database(f"load-{uuid4().hex}")
    job = JOB | {"name": "load", "space": {"n": list(range(1, 41)), "mode": [f"m{n}" for n in range(50)]}}
    job |= {"price": "0.01 * n", "budget": {"cost": "100000 USD"}}
    reported: list[dict[int, float]] = [{} for _ in range(CLIENTS)]
    errors: list[BaseException] = []
    with served(url, tmp_path) as one, served(url, tmp_path) as two:
        assert one.post("studies", job).status == 201
        until = time.monotonic() + SECONDS

        def client(place: int) -> None:
            study = RemoteStudy("load", Http((one, two)[place % 2].url, WRITE))
            rng = random.Random(place)
            try:
                while time.monotonic() < until:
                    trial = study.ask()
                    assert trial is not None
                    if rng.random() < 0.2:
                        study.runs.heartbeat([trial.number])
                    runtime = min(round(rng.uniform(1, 500), 3), trial.timeout or 500)
                    study.tell(trial, runtime=runtime)
                    reported[place][trial.number] = runtime
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=client, args=(place,)) for place in range(CLIENTS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, errors[0]
        runtimes = {number: runtime for one_client in reported for number, runtime in one_client.items()}
        assert sum(map(len, reported)) == len(runtimes) >= CLIENTS, "no two clients got the same trial"
        spent = {server.get("studies/load").json["spent_usd"] for server in (one, two)}
    with Storage(url) as storage:
        kept = storage.trials("load")
        kinds = [event.kind for event in storage.events("load")]
    assert [trial.number for trial in kept] == list(range(len(runtimes)))
    assert {trial.number: trial.outcome.seconds for trial in kept if trial.outcome is not None} == runtimes
    assert len({trial.order.row for trial in kept}) == len(kept), "no configuration was run twice"
    assert kinds.count("settled") == kinds.count("ordered") == len(runtimes)
    assert sorted(trial.rank for trial in kept if trial.rank is not None) == list(range(len(runtimes)))
    charged = sum(trial.outcome.charged_usd for trial in kept if trial.outcome is not None)
    assert list(spent) == [pytest.approx(charged)]
