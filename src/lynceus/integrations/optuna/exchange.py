"""Studies of Optuna as past runs, and our studies in Optuna's storages, where optuna-dashboard shows them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

import optuna
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from lynceus.analysis.trial_rows import TrialRow, all_trials, trial_rows
from lynceus.errors import InfrastructureError, InputError, did_you_mean
from lynceus.integrations.optuna.attributes import CHARGED_USD, FAILURE_REASON, PRICE, RUNTIME_S, TIMEOUT_S, WHY
from lynceus.integrations.optuna.distributions import distribution_of
from lynceus.integrations.optuna.mirror import run_seconds
from lynceus.problem.problem import Problem
from lynceus.space.column import listed
from lynceus.study.past_runs import PastRun
from lynceus.study.view import StudyView
from lynceus.trial.trial import TrialState as State

NUMBER = "lynceus:number"
"""User attribute of an exported trial: its number in our study."""
_DETAIL = "lynceus:detail"
_STATES = {State.COMPLETE: TrialState.COMPLETE, State.TIMEOUT: TrialState.PRUNED, State.FAIL: TrialState.FAIL}
_OURS = {theirs: ours for ours, theirs in _STATES.items()}
_SQLITE = b"SQLite format 3\0"


@contextmanager
def open_storage(address: str, *, create: bool) -> Iterator[BaseStorage]:
    """A storage of Optuna: a database by its address, an SQLite file, or a journal file."""
    path = Path(address)
    if "://" not in address and not create and not path.is_file():
        raise InputError(
            f"{address}: there is no such file; name a journal file or an SQLite file of Optuna, or sqlite:///optuna.db."
        )
    try:
        if "://" not in address and not _is_sqlite(path):
            yield JournalStorage(JournalFileBackend(address))
        else:
            yield from _rdb(address if "://" in address else f"sqlite:///{address}")
    except (InputError, InfrastructureError):
        raise
    except (ImportError, OSError, RuntimeError, ValueError, optuna.exceptions.OptunaError) as error:
        raise InputError(f"{address}: this is no storage that Optuna {optuna.__version__} opens: {error}") from None


def _rdb(address: str) -> Iterator[BaseStorage]:
    from sqlalchemy import NullPool
    from sqlalchemy.exc import SQLAlchemyError

    # Optuna leaves the connections of a database that it cannot open in their pool. SQLite needs no pool.
    pool = {"poolclass": NullPool} if address.startswith("sqlite") else {}
    try:
        storage = RDBStorage(address, engine_kwargs=pool)
        try:
            yield storage
        finally:
            storage.engine.dispose()
    except SQLAlchemyError as error:
        said = str(error.__cause__ or error).splitlines()[0]
        raise InfrastructureError(f"Optuna's storage {address.split('://')[0]}://… cannot be used: {said}.") from None


def _is_sqlite(path: Path) -> bool:
    if path.suffix in (".db", ".sqlite", ".sqlite3") and not path.exists():
        return True
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def past_runs(address: str, name: str | None, problem: Problem) -> tuple[list[PastRun], int]:
    """The trials of an Optuna study that have ended, and how many have not.

    Configurations are told by the names of parameters. The time of a run is its user attribute `runtime_s`, or the time from its start to
    its end; metrics are user attributes, and the value is the metric of the objective where no attribute tells it. A pruned trial is
    a stopped run.
    """
    with open_storage(address, create=False) as storage:
        study = optuna.load_study(study_name=_named(storage, address, name), storage=storage)
        trials = study.get_trials(deepcopy=False)
        single = len(study.directions) == 1
    names = {one.name for one in problem.space.parameters}
    runs = [_past_run(one, problem, names, single) for one in trials if one.state in _OURS]
    return runs, len(trials) - len(runs)


def _named(storage: BaseStorage, address: str, name: str | None) -> str:
    known = [one.study_name for one in storage.get_all_studies()]
    if not known:
        raise InputError(f"{address}: this storage of Optuna has no study.")
    if name is None and len(known) == 1:
        return known[0]
    if name in known:
        return str(name)
    if name is None:
        raise InputError(f"{address}: this storage has the studies {listed(known)}; name one with --optuna-study.")
    raise InputError(
        f"{address}: there is no study {name!r}.{did_you_mean(name, known) or f' It has {listed(known)}.'}"
    )


def _past_run(trial: FrozenTrial, problem: Problem, names: set[str], single: bool) -> PastRun:
    told, state = trial.user_attrs, _OURS[trial.state]
    metrics = {
        key: float(value)
        for key, value in told.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and not key.startswith("lynceus:")
    }
    metrics = {key: value for key, value in metrics.items() if key not in (RUNTIME_S, CHARGED_USD)}
    is_metric = single and problem.kind == "metric" and problem.goal.formula is None
    if is_metric and state is State.COMPLETE and trial.value is not None:
        metrics.setdefault(problem.objective.metric, trial.value)
    reason = str(told[FAILURE_REASON]) if state is State.FAIL and FAILURE_REASON in told else None
    point = {key: value for key, value in trial.params.items() if key in names}
    return PastRun(point, run_seconds(trial), metrics, state, reason, str(told.get(_DETAIL, "")))


def export_study(study: StudyView, address: str, name: str | None = None) -> int:
    """Write the trials that have ended to a storage of Optuna; returns how many are new. Again adds what has ended since."""
    name = study.name if name is None else name
    direction = StudyDirection.MAXIMIZE if study.problem.objective.maximise else StudyDirection.MINIMIZE
    with open_storage(address, create=True) as storage, warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        theirs = optuna.create_study(study_name=name, storage=storage, direction=direction, load_if_exists=True)
        if theirs.direction is not direction:
            raise InputError(
                f"{address}: study {name!r} exists there to {theirs.direction.name.lower()}; choose another name."
            )
        known = {one.user_attrs.get(NUMBER) for one in theirs.get_trials(deepcopy=False)}
        theirs.set_metric_names([str(study.problem.objective.metric)])
        facts = {"objective": study.problem.objective, "constraints": ", ".join(map(str, study.problem.constraints))}
        for key, value in {**facts, "policy": study.policy.name}.items():
            theirs.set_user_attr(f"lynceus:{key}", str(value))
        new = [row for row in trial_rows(study.problem, all_trials(study)) if row.number not in known]
        done = [_frozen(study.problem, row) for row in new if State(row.state) in _STATES]
        theirs.add_trials(done)
    return len(done)


def _frozen(problem: Problem, row: TrialRow) -> FrozenTrial:
    told: dict[str, object] = {NUMBER: row.number, PRICE: row.price_usd_per_hour, WHY: row.why, **row.metrics}
    optional = {TIMEOUT_S: row.timeout_s, RUNTIME_S: row.runtime_s, CHARGED_USD: row.charged_usd}
    optional_texts = {FAILURE_REASON: row.reason, _DETAIL: row.detail or None}
    told |= {key: value for key, value in {**optional, **optional_texts}.items() if value is not None}
    state = _STATES[State(row.state)]
    if state is TrialState.COMPLETE and row.value is None:
        state = TrialState.FAIL  # Optuna has no finished trial without a value
    trial = optuna.create_trial(
        state=state,
        value=row.value if state is TrialState.COMPLETE else None,
        params=dict(row.params),
        distributions={one.name: distribution_of(one) for one in problem.space.parameters if one.name in row.params},
        user_attrs=told,
    )
    if state is TrialState.COMPLETE and row.runtime_s is not None:
        for one in problem.constraints:
            observed = {**row.metrics, "time": row.runtime_s, "cost": row.cost_usd or 0.0}.get(one.metric)
            if observed is not None:
                trial.set_constraint(str(one), one.bound - observed if one.at_least else observed - one.bound)
    trial.datetime_start, trial.datetime_complete = _moment(row.started), _moment(row.ended)
    return trial


def _moment(text: str | None) -> datetime:
    """Optuna keeps local moments without a zone; a trial whose moments are not known ended now."""
    return datetime.now() if text is None else datetime.fromisoformat(text).astimezone().replace(tzinfo=None)
