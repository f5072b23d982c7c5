"""python -m benchmarks.web: how fast the server is, with ten thousand trials and with fifty clients on a real PostgreSQL.

Prints two tables. It also checks in the storage that no trial was lost, duplicated or charged twice.
"""

import argparse
import http.client
import json
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from dashboards import WRITE, dashboard
from lynceus.storage.sql.storage import Storage
from postgres import server as postgres_server

SPACE = {"n": list(range(1, 101)), "mode": [f"m{index}" for index in range(200)]}
"""Twenty thousand configurations."""
JOB: dict[str, Any] = {
    "name": "load",
    "space": SPACE,
    "price": "0.01 * n",
    "constraints": ["runtime <= 10m"],
    "budget": {"cost": "1000000 USD"},
    "policy": "random",
    "trial": {"timeout": "capped"},
}


@dataclass
class Connection:
    """A connection that stays open, like that of a scheduler."""

    url: str

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=120)

    def send(self, method: str, path: str, body: Any = None) -> tuple[Any, float, float, int]:
        """Response, seconds, seconds of these for the decision, bytes."""
        headers = {"Authorization": f"Bearer {WRITE}", "Content-Type": "application/json"}
        if method == "POST":
            headers["Idempotency-Key"] = str(uuid4())
        began = time.perf_counter()
        self._connection.request(method, f"/api/v1/{path}", json.dumps(body or {}).encode(), headers)
        response = self._connection.getresponse()
        data = response.read()
        took = time.perf_counter() - began
        if response.status >= 300:
            raise RuntimeError(f"{method} {path}: {response.status} {data[:300]!r}")
        timing = response.headers.get("Server-Timing", "")
        decided = float(timing.partition("decide;dur=")[2].partition(",")[0] or 0.0) / 1e3
        return json.loads(data), took, min(decided, took), len(data)


@dataclass
class Client(threading.Thread):
    """Asks for a trial, waits, tells its result, in a loop."""

    url: str
    until: float
    job_s: float
    seed: int
    asks: list[tuple[float, float]] = field(default_factory=list)
    tells: list[tuple[float, float]] = field(default_factory=list)
    told: dict[int, float] = field(default_factory=dict)
    error: str = ""

    def __post_init__(self) -> None:
        super().__init__(daemon=True)

    __hash__ = threading.Thread.__hash__

    def run(self) -> None:
        rng, connection = random.Random(self.seed), Connection(self.url)
        try:
            while time.monotonic() < self.until:
                answer, took, decided, _ = connection.send("POST", "studies/load/ask")
                self.asks.append((took, decided))
                number = answer["trial"]["number"]
                time.sleep(rng.uniform(0.5, 1.5) * self.job_s)
                runtime = round(rng.uniform(1.0, 500.0), 3)
                _, took, decided, _ = connection.send(
                    "POST", f"studies/load/trials/{number}/tell", {"runtime": runtime}
                )
                self.tells.append((took, decided))
                self.told[number] = runtime
        except Exception as error:
            self.error = repr(error)


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def load(clients: int, seconds: float, job_s: float) -> None:
    """Many clients on one study."""
    with postgres_server() as database, tempfile.TemporaryDirectory() as folder:
        url = database.database("load")
        with dashboard(url, Path(folder)) as server:
            assert server.post("studies", JOB).status == 201
            Connection(server.url).send(
                "POST", "studies/load/ask"
            )  # the first decision of a process imports its modules
            crowd = [Client(server.url, time.monotonic() + seconds, job_s, seed) for seed in range(clients)]
            for one in crowd:
                one.start()
            for one in crowd:
                one.join()
        errors = [one.error for one in crowd if one.error]
        assert not errors, errors[:3]
        check_storage(url, crowd)
    print(
        f"\n{clients} clients ask and tell for {seconds:g} s on one study (PostgreSQL, jobs of {job_s:g} s, policy random)"
    )
    print(f"{'':8}{'requests':>10}{'per s':>8}{'p50 ms':>9}{'p99 ms':>9}{'p99 without decisions':>24}")
    for name, rows in (
        ("ask", [r for one in crowd for r in one.asks]),
        ("tell", [r for one in crowd for r in one.tells]),
    ):
        took, bare = [a for a, _ in rows], [a - b for a, b in rows]
        print(
            f"{name:8}{len(rows):>10,}{len(rows) / seconds:>8.0f}{quantile(took, 0.5) * 1e3:>9.0f}"
            f"{quantile(took, 0.99) * 1e3:>9.0f}{quantile(bare, 0.99) * 1e3:>21.0f} ms"
        )


def check_storage(url: str, crowd: list[Client]) -> None:
    """Every trial that a client told is in the storage once, with its time, and there are no others."""
    told = {number: runtime for one in crowd for number, runtime in one.told.items()}
    assert sum(len(one.told) for one in crowd) == len(told), "two clients were given the same trial"
    with Storage(url) as storage:
        kept = storage.trials("load")
        kinds = [event.kind for event in storage.events("load")]
    assert [trial.number for trial in kept] == list(range(len(kept)))
    settled = {trial.number: trial.outcome.seconds for trial in kept if trial.outcome is not None}
    assert settled == told, f"{len(settled)} trials are settled, {len(told)} were told"
    assert len({trial.order.row for trial in kept}) == len(kept), "a configuration was given to two clients"
    assert kinds.count("settled") == len(told)
    assert kinds.count("ordered") == len(kept)
    print(f"storage: {len(kept):,} trials ordered, {len(told):,} told, none lost, none duplicated")


def pages(trials: int) -> None:
    """How long a browser waits for the pages of a study with many trials."""
    rng = random.Random(0)
    with tempfile.TemporaryDirectory() as folder, dashboard(f"sqlite:///{folder}/s.db", Path(folder)) as server:
        assert server.post("studies", JOB).status == 201
        connection = Connection(server.url)
        rows = [
            {"params": {"n": n, "mode": mode}, "runtime": round(500 / n + rng.uniform(1, 90), 2)}
            for n in SPACE["n"]
            for mode in SPACE["mode"]
        ]
        for start in range(0, trials, 1000):
            connection.send("POST", "studies/load/trials", {"trials": rows[start : start + 1000]})
        print(f"\na study of {trials:,} trials (SQLite)")
        print(f"{'':44}{'first ms':>10}{'again ms':>10}{'kB':>8}")
        for label, path in (
            ("studies (first page)", "studies"),
            ("study: facts of the page", "studies/load/view"),
            ("trials, a page of 100", "studies/load/trials?limit=100&order=-number"),
            ("one trial", "studies/load/trials/17"),
            ("export as CSV is not timed; best", "studies/load/best"),
            ("insight: models (random has none: trees)", "studies/load/insight"),
        ):
            times = [connection.send("GET", path)[1:4:2] for _ in range(4)]
            print(
                f"{label:44}{times[0][0] * 1e3:>10.0f}{min(t for t, _ in times[1:]) * 1e3:>10.0f}{times[0][1] / 1e3:>8.0f}"
            )
        update(connection, trials)


def update(connection: Connection, settled: int) -> None:
    """One more trial: the request of an open page."""
    times = []
    for number in range(settled, settled + 10):
        connection.send("POST", "studies/load/ask")
        connection.send("POST", f"studies/load/trials/{number}/tell", {"runtime": 77.0})
        answer, took, _, size = connection.send("GET", f"studies/load/view?since={number}")
        assert answer["settled"] == number + 1
        times.append((took, size))
    slowest = max(took for took, _ in times)
    print(f"{'update after one more trial (slowest of 10)':44}{slowest * 1e3:>10.0f}{'':>10}{times[-1][1] / 1e3:>8.1f}")


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--job-seconds", type=float, default=1.0, help="how long a client works on a trial")
    parser.add_argument("--only", choices=["pages", "load"])
    given = parser.parse_args(arguments)
    parts: dict[str, Callable[[], None]] = {
        "pages": lambda: pages(given.trials),
        "load": lambda: load(given.clients, given.seconds, given.job_seconds),
    }
    for name, part in parts.items():
        if given.only in (None, name):
            part()


if __name__ == "__main__":
    main()
