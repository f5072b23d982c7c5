"""A study on a server. Names, arguments and results are those of `lynceus.Study`."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lynceus.client.http import Http
from lynceus.errors import InfrastructureError, InputError, OverrunWarning
from lynceus.problem.job_input import JobInput
from lynceus.problem.objective import Constraint
from lynceus.study.past_runs import Past, PastRun
from lynceus.trial.outcome import FailureReason
from lynceus.trial.record import RequestedState
from lynceus.trial.trial import Trial, TrialState, TrialSummary, run_measured, told_on_error

HEARTBEAT_S = 30.0
"""Seconds between two heartbeats while `optimize` runs a trial."""
_PAGE = 1000
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0


@dataclass(frozen=True)
class RemoteView:
    """A study on a server, for readers. Every property asks the server again: others may work on the study, too."""

    name: str
    http: Http

    @property
    def reason(self) -> str | None:
        """Why the study ended, as a sentence; None while it goes on."""
        found: str | None = self.status()["reason"]
        return found

    @property
    def budget_usd(self) -> float:
        """The budget, with money that was added later; infinite without one."""
        return _or_infinite(self.status()["budget_usd"])

    @property
    def spent_usd(self) -> float:
        """What all settled trials were charged."""
        return float(self.status()["spent_usd"])

    @property
    def reserved_usd(self) -> float:
        """What open trials may still be charged at most."""
        return _or_infinite(self.status()["reserved_usd"])

    @property
    def trials(self) -> list[TrialSummary]:
        """Every trial by its number, open ones included."""
        found: list[TrialSummary] = []
        offset: int | None = 0
        while offset is not None:
            page = self._get("trials", offset=offset, limit=_PAGE)
            found += map(_summary, page["trials"])
            offset = page["next_offset"]
        return found

    @property
    def best_params(self) -> Mapping[str, object]:
        """The best configuration: the one that `recommend` names."""
        found: Mapping[str, object] = self._best()["best_params"]
        return found

    @property
    def best_value(self) -> float:
        """What `recommend` says of its objective: dollars, seconds, or the metric."""
        return float(self._best()["best_value"])

    @property
    def best_trial(self) -> TrialSummary:
        """The run that represents the best configuration: its only one, or the median of several."""
        number = self._best()["best_trial"]
        if number is None:
            raise InputError(
                f"study {self.name!r}: the best configuration is predicted and was not run, so no trial stands for it; see recommend()."
            )
        return _summary(self._get("trials", offset=number, limit=1)["trials"][0])

    def status(self) -> dict[str, Any]:
        """State, money, trials and the best configuration (`GET /studies/{name}`)."""
        found: dict[str, Any] = self._get()
        return found

    def recommend(self) -> dict[str, Any] | None:
        """The configuration to use from now on, with its cost and command line (`GET /studies/{name}/best`)."""
        found: dict[str, Any] | None = self._get("best")
        return found

    def explain(self) -> dict[str, Any]:
        """The next trial and why, parameter importance, calibration (`GET /studies/{name}/explain`)."""
        found: dict[str, Any] = self._get("explain")
        return found

    def what_if(self, deadline: str | None = None, price: str | None = None) -> dict[str, Any]:
        """The answer under other deadlines (`20m,30m`) or prices (`GET /studies/{name}/what-if`)."""
        found: dict[str, Any] = self._get("what-if", deadline=deadline, price=price)
        return found

    def _best(self) -> dict[str, Any]:
        status = self.status()
        if status["best_params"] is None:
            raise InputError(f"study {self.name!r}: no trial has kept every constraint yet, so there is no best one.")
        return status

    def _get(self, *path: str, **query: str | int | None) -> Any:
        return self.http.get("studies", self.name, *path, **query)


@dataclass(frozen=True)
class RemoteRuns:
    """The runs of a study on a server, for programs that execute them."""

    name: str
    http: Http

    def heartbeat(self, numbers: Sequence[int]) -> RequestedState:
        """A worker still looks after these runs; returns what the user wants by now. KILL: end them and tell FAIL with reason user."""
        answers = [self.http.post("studies", self.name, "trials", str(number), "heartbeat") for number in numbers]
        states = [RequestedState(answer["requested_state"]) for answer in answers]
        return max(states, key=list(RequestedState).index, default=RequestedState.RUN)


class RemoteStudy(RemoteView):
    """A study on a server: ask for a configuration to run, tell how it went."""

    @property
    def runs(self) -> RemoteRuns:
        """The side of the study that executors use."""
        return RemoteRuns(self.name, self.http)

    def ask(self) -> Trial | None:
        """The next trial; None when the study is over (`reason` says why) or must wait for open trials."""
        return _trial(self._post("ask")["trial"])

    def tell(
        self,
        trial: Trial | int,
        *,
        runtime: float | str | None = None,
        state: TrialState | str = TrialState.COMPLETE,
        reason: FailureReason | str | None = None,
        charged: float | str | None = None,
        metrics: Mapping[str, float] | None = None,
        progress: Sequence[tuple[float, float]] = (),
        detail: str = "",
        **more_metrics: float,
    ) -> None:
        """How a trial went, as `Study.tell`: a trial beyond its timeout counts as stopped, and a warning says so."""
        body = {
            "runtime": runtime,
            "state": str(state),
            "reason": None if reason is None else str(reason).lower(),
            "charged": charged,
            "metrics": {name: float(value) for name, value in {**(metrics or {}), **more_metrics}.items()},
            "progress": [[float(seconds), float(value)] for seconds, value in progress],
            "detail": detail,
        }
        row = self._post("trials", _number(trial), "tell", body=body)["trial"]
        if row["state"] != str(state) or len(row["detail"]) > len(detail):
            warnings.warn(f"trial {row['number']}: {row['detail']}.", OverrunWarning, stacklevel=2)

    def optimize(self, objective: Callable[[Trial], float | Mapping[str, float]], n_trials: int | None = None) -> None:
        """Ask, call, tell until the study ends. `objective` returns seconds, or a mapping with `runtime` and metrics.

        It waits while other workers have trials open and there is nothing to do, and sends heartbeats while `objective` runs.
        An error of `objective` ends it after the trial was told as failed.
        """
        done = 0
        while (n_trials is None or done < n_trials) and (trial := self._ask_patiently()) is not None:
            with told_on_error(trial, self.tell):
                with self._heartbeats(trial):
                    runtime, state, metrics = run_measured(trial, objective)
                self.tell(trial, runtime=runtime, state=state, metrics=metrics)
            done += 1

    def enqueue_trial(self, params: Mapping[str, object]) -> None:
        """Run this configuration next, before anything that the policy would choose."""
        self._post("queue", body={"params": dict(params)})

    def add_trial(
        self,
        params: Mapping[str, object],
        *,
        runtime: float | str | None = None,
        metrics: Mapping[str, float] | None = None,
        state: TrialState | str = TrialState.COMPLETE,
        reason: FailureReason | str | None = None,
        detail: str = "",
        input: JobInput | Mapping[str, object] | str | None = None,
    ) -> None:
        """A past run: nothing is charged, nothing is run. A stopped run tells that its time is longer.

        `input` is what it read, if not the present one.
        """
        self.add_trials([PastRun(params, runtime, metrics or {}, state, reason, detail)], input=input)

    def add_trials(self, past: Iterable[Past], *, input: JobInput | Mapping[str, object] | str | None = None) -> None:
        """Many past runs at once, as `PastRun`, or finished ones as (configuration, runtime, metrics): all are kept, or none."""
        rows = []
        for given in past:
            one = given if isinstance(given, PastRun) else PastRun(*given)
            row = {
                "params": dict(one.params),
                "metrics": dict(one.metrics),
                "state": str(one.state),
                "detail": one.detail,
            }
            row |= {} if one.runtime is None else {"runtime": one.runtime}
            rows.append(row if one.reason is None else {**row, "reason": str(one.reason)})
        told = {} if input is None else {"input": JobInput.read(input).record()}
        self._post("trials", body={"trials": rows, **told})

    def stop(self, reason: str = "stopped by the user", *, kill: bool = False) -> None:
        """Start no further trial; open ones finish, or end now with `kill`. A study that is over stays as it ended."""
        self._post("stop", body={"reason": reason, "kill": kill})

    def stop_trial(self, trial: Trial | int) -> None:
        """End one open trial; its worker notices within seconds, ends it and settles it as stopped by the user."""
        self._post("trials", _number(trial), "stop")

    def resume(
        self, add_usd: float = 0.0, *, add_trials: int = 0, constraints: Sequence[str | Constraint] = ()
    ) -> None:
        """Go on after a stop, a pause or a spent budget, perhaps with more money or trials, or under other constraints."""
        more: dict[str, Any] = {"constraints": [str(one) for one in constraints]} if constraints else {}
        more |= {"add_trials": add_trials} if add_trials else {}
        self._post("resume", body={"add_budget": add_usd, **more})

    def _ask_patiently(self) -> Trial | None:
        """The next trial, after waiting for open ones where that may help; None when the study is over."""
        pause_s = _FIRST_PAUSE_S
        while True:
            answer = self._post("ask")
            if answer["trial"] is not None or not answer["wait"]:
                return _trial(answer["trial"])
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    @contextmanager
    def _heartbeats(self, trial: Trial) -> Iterator[None]:
        """Send heartbeats in the background."""
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(HEARTBEAT_S):
                try:
                    self.runs.heartbeat([trial.number])
                except InfrastructureError:
                    continue  # the server cannot be reached; `tell` tries again later
                except InputError:
                    return  # the trial was settled by another program

        thread = threading.Thread(target=beat, name=f"lynceus-trial-{trial.number}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()

    def _post(self, *path: str, body: Mapping[str, Any] | None = None) -> Any:
        return self.http.post("studies", self.name, *path, body=body)


def _number(trial: Trial | int) -> str:
    return str(trial if isinstance(trial, int) else trial.number)


def _or_infinite(usd: float | None) -> float:
    """JSON has no infinity: null stands for it."""
    return float("inf") if usd is None else float(usd)


def _trial(document: Mapping[str, Any] | None) -> Trial | None:
    if document is None:
        return None
    return Trial(
        document["number"],
        document["params"],
        document["timeout_s"],
        document["why"],
        document["price_usd_per_hour"],
        document["max_charge_usd"],
    )


def _summary(row: Mapping[str, Any]) -> TrialSummary:
    return TrialSummary(
        row["number"],
        row["params"],
        TrialState(row["state"]),
        row["runtime_s"],
        row["cost_usd"],
        row["charged_usd"],
        row["keeps_constraints"],
        row["metrics"],
        row["reason"],
        row["detail"],
        row["why"],
        _seconds(row.get("started")),
        _seconds(row.get("ended")),
    )


def _seconds(moment: str | None) -> float | None:
    """Seconds since the epoch."""
    return None if moment is None else datetime.fromisoformat(moment).timestamp()
