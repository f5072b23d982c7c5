"""A study on a server. The words, the arguments and the results are those of `lynceus.Study`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from lynceus.client.http import Http
from lynceus.errors import InfrastructureError, InputError
from lynceus.history import Reason
from lynceus.ledger import Wish
from lynceus.trial import SeenTrial, Trial, TrialState

BEAT_S = 30.0
"""Seconds between two signs of life while `optimize` runs a trial."""
_PAGE = 1000
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


@dataclass(frozen=True)
class RemoteStudy:
    """A study on a server. What it is asked about is read anew each time: others may work on it, too."""

    name: str
    http: Http

    # Asking and telling ------------------------------------------------------------------------------------------------

    def ask(self) -> Trial | None:
        """The next trial; nothing when the study is over (`reason` says why) or must wait for open trials."""
        return _trial(self._post("ask")["trial"])

    def tell(
        self,
        trial: Trial | int,
        *,
        runtime: float | str | None = None,
        state: TrialState | str = TrialState.COMPLETE,
        reason: Reason | str | None = None,
        charged: float | str | None = None,
        metrics: Mapping[str, float] | None = None,
        progress: Sequence[tuple[float, float]] = (),
        detail: str = "",
        **more_metrics: float,
    ) -> None:
        """How a trial went: its running time and metrics. `charged` overrides what the tariff says, when the real bill is known."""
        told = {
            "runtime": runtime,
            "state": str(state),
            "reason": None if reason is None else str(reason).lower(),
            "charged": charged,
            "metrics": {name: float(value) for name, value in {**(metrics or {}), **more_metrics}.items()},
            "progress": [[float(moment), float(value)] for moment, value in progress],
            "detail": detail,
        }
        self._post("trials", _number(trial), "tell", body=told)

    def optimize(self, objective: Callable[[Trial], float | Mapping[str, float]], n_trials: int | None = None) -> None:
        """Ask, call, tell until the study ends. `objective` returns seconds, or a mapping with `runtime` and metrics.

        While others have trials open and there is nothing to do, it waits. While `objective` runs, the server is given signs of life.
        """
        done = 0
        while (n_trials is None or done < n_trials) and (trial := self._ask_patiently()) is not None:
            with self._alive(trial):
                result = objective(trial)
            values = dict(result) if isinstance(result, Mapping) else {"runtime": float(result)}
            if "runtime" not in values:
                raise InputError(
                    f"optimize: the function returned {sorted(values)} for trial {trial.number}; it must return 'runtime' in seconds."
                )
            runtime = values.pop("runtime")
            stopped = trial.timeout is not None and runtime >= trial.timeout
            state = TrialState.TIMEOUT if stopped else TrialState.COMPLETE
            self.tell(trial, runtime=runtime, state=state, metrics=values)
            done += 1

    def heartbeat(self, numbers: Sequence[int]) -> Wish:
        """These trials are looked after; returns the most that a person wants by now (KILL: end them and tell FAIL, user)."""
        wishes = [Wish(self._post("trials", str(number), "heartbeat")["wish"]) for number in numbers]
        return max(wishes, key=list(Wish).index, default=Wish.RUN)

    def enqueue_trial(self, params: Mapping[str, object]) -> None:
        """Run this configuration next, before anything that the policy would choose."""
        self._post("queue", body={"params": dict(params)})

    def add_trial(
        self, params: Mapping[str, object], *, runtime: float | str, metrics: Mapping[str, float] | None = None
    ) -> None:
        """A past measurement as free knowledge: nothing is charged, nothing is run."""
        self.add_trials([(params, runtime, metrics or {})])

    def add_trials(self, past: Iterable[tuple[Mapping[str, object], float | str, Mapping[str, float]]]) -> None:
        """Many past measurements at once: all are kept, or none."""
        rows = [
            {"params": dict(params), "runtime": runtime, "metrics": dict(metrics)} for params, runtime, metrics in past
        ]
        self._post("trials", body={"trials": rows})

    # Steering ----------------------------------------------------------------------------------------------------------

    def stop(self, reason: str = "stopped by the user", *, kill: bool = False) -> None:
        """Ask for no further trials; workers let those that run come to their end, or end them too."""
        self._post("stop", body={"reason": reason, "kill": kill})

    def stop_trial(self, trial: Trial | int) -> None:
        """End one open trial; whoever runs it notices and settles it as stopped by a person."""
        self._post("trials", _number(trial), "stop")

    def resume(self, add_usd: float = 0.0) -> None:
        """Go on after a stop, a pause or a spent budget, perhaps with more money."""
        self._post("resume", body={"add_budget": add_usd})

    # Looking -----------------------------------------------------------------------------------------------------------

    @property
    def reason(self) -> str | None:
        """Why the study ended; nothing while it goes on."""
        found: str | None = self.facts()["reason"]
        return found

    @property
    def best_params(self) -> Mapping[str, object]:
        """The best configuration that was seen to keep every limit."""
        return self.best_trial.params

    @property
    def best_value(self) -> float:
        """Its goal value: dollars, seconds, or the metric."""
        return float(self._best()["best_value"])

    @property
    def best_trial(self) -> SeenTrial:
        """The first run of the best configuration that kept every limit."""
        number = self._best()["best_trial"]
        page = self._get("trials", offset=number, limit=1)["trials"]
        return _seen(page[0])

    @property
    def trials(self) -> list[SeenTrial]:
        """Every trial by its number, open ones included."""
        found: list[SeenTrial] = []
        offset: int | None = 0
        while offset is not None:
            page = self._get("trials", offset=offset, limit=_PAGE)
            found += map(_seen, page["trials"])
            offset = page["next_offset"]
        return found

    @property
    def budget_usd(self) -> float:
        """The budget with what was added to it; infinite when there is none."""
        usd = self.facts()["budget_usd"]
        return float("inf") if usd is None else float(usd)

    @property
    def spent_usd(self) -> float:
        """What all settled trials were charged."""
        return float(self.facts()["spent_usd"])

    @property
    def reserved_usd(self) -> float:
        """What open trials may still be charged at most."""
        usd = self.facts()["reserved_usd"]
        return float("inf") if usd is None else float(usd)

    @property
    def identity(self) -> str:
        """Tells this study apart from every other one, also of the same name."""
        return str(self.facts()["identity"])

    def facts(self) -> dict[str, Any]:
        """How the study stands, as the API tells it (`GET /studies/{name}`)."""
        found: dict[str, Any] = self._get()
        return found

    def explain(self) -> dict[str, Any]:
        """Why the next suggestion, which parameters matter, predicted against seen (`GET /studies/{name}/explain`)."""
        found: dict[str, Any] = self._get("explain")
        return found

    def what_if(self, deadline: str | None = None, price: str | None = None) -> dict[str, Any]:
        """The answer under other deadlines (`20m,30m`) or prices (`GET /studies/{name}/what-if`)."""
        found: dict[str, Any] = self._get("what-if", deadline=deadline, price=price)
        return found

    def recommend(self) -> dict[str, Any] | None:
        """The configuration to use from now on, with its cost and command line (`GET /studies/{name}/best`)."""
        found: dict[str, Any] | None = self._get("best")["recommendation"]
        return found

    # Inside ------------------------------------------------------------------------------------------------------------

    def _best(self) -> dict[str, Any]:
        facts = self.facts()
        if facts["best_trial"] is None:
            raise InputError(f"study {self.name!r}: no trial has kept every limit yet, so there is no best one.")
        return facts

    def _ask_patiently(self) -> Trial | None:
        pause_s = _FIRST_PAUSE_S
        while True:
            answer = self._post("ask")
            if answer["trial"] is not None or not answer["wait"]:
                return _trial(answer["trial"])
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    @contextmanager
    def _alive(self, trial: Trial) -> Iterator[None]:
        """Give signs of life in the background."""
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(BEAT_S):
                try:
                    self.heartbeat([trial.number])
                except InfrastructureError:
                    continue  # the server is away; the result is kept for it
                except InputError:
                    return  # the trial was settled by somebody else

        thread = threading.Thread(target=beat, name=f"lynceus-trial-{trial.number}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()

    def _get(self, *path: str, **query: str | int | None) -> Any:
        return self.http.get("studies", self.name, *path, **query)

    def _post(self, *path: str, body: Mapping[str, Any] | None = None) -> Any:
        return self.http.post("studies", self.name, *path, body=body)


def _number(trial: Trial | int) -> str:
    return str(trial if isinstance(trial, int) else trial.number)


def _trial(found: Mapping[str, Any] | None) -> Trial | None:
    if found is None:
        return None
    return Trial(
        found["number"],
        found["params"],
        found["timeout_s"],
        found["why"],
        found["price_usd_per_hour"],
        found["max_charge_usd"],
    )


def _seen(row: Mapping[str, Any]) -> SeenTrial:
    return SeenTrial(
        row["number"],
        row["params"],
        TrialState(row["state"]),
        row["runtime_s"],
        row["cost_usd"],
        row["charged_usd"],
        row["keeps_limits"],
        row["metrics"],
        row["reason"],
        row["detail"],
        row["why"],
    )
