"""The campaign of `lynceus lab serving`: the default on tables of LLM serving and of GPU training, against other ways to search them.

Every job file of the two folders is a task. Policies that read formulas get the objective as users write it (`price / throughput`: the
price is known, the throughput is not); the others get it as a metric, as it stands in the job files. The optimum is the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from lynceus.errors import InputError
from lynceus.jobfile.sections.budget import RateSection
from lynceus.jobfile.yaml.document import Document
from lynceus.replay.job_file import ReplaySpec
from lynceus.replay.job_table import JobTable
from lynceus.replay.run import Replay
from lynceus.replay.tables import data_folder
from lynceus_lab.cell import Cell, Setting, loaded
from lynceus_lab.experiment import policy_text
from lynceus_lab.experiment_file import ArmSpec, BudgetSpec, OptionsSpec
from lynceus_lab.trace_store import Store

FOLDERS = ("llm_serving", "gpu_training")
LEVEL = 1.1
"""The CNO that counts as found: within 10 % of the optimum."""
FORMULAS: Mapping[str, str] = MappingProxyType(
    {
        "minimize usd_per_mtok": "minimize price / output_tokens_per_s",
        "minimize fleet_usd_per_hour": "minimize price * ceil(200 / users_per_pod)",
    }
)
"""Objectives of the job files → the same with its known part."""
OURS, AS_METRIC, WARM = "lynceus", "lynceus, objective as a metric", "lynceus, warm deployments"
PEER = "optuna-gp"
RIVALS = ("sweep", "random+timeouts", "bo", "known-cost")
"""The best of them on each task is what the default is compared with."""
EQUAL_MONEY = ("staged", PEER)
"""How servers are tuned by hand, and a library; compared at the same money."""
POLICIES = (OURS, AS_METRIC, WARM, *RIVALS, *EQUAL_MONEY)
_FORMULA_READERS = (OURS, WARM, "known-cost")
_DEPLOYMENT = ("gpu_type", "n_gpus", "framework")
"""Columns that tell servers apart; other parameters of the serving tables are loads."""
_FREE_HOURS = 3.0
"""What the task of LLM-Pilot may spend: hours of its cheapest profile."""


@dataclass(frozen=True, order=True)
class Task:
    """A job file."""

    group: str
    """Who measured it: `ibm`, `argonne`, `zeus` or `sia`."""
    name: str
    path: str
    objective: str
    """As the file has it."""


def tasks(only: str = "") -> list[Task]:
    """The job files of both folders, or those whose names contain a text."""
    folder = data_folder()
    if folder is None:
        raise InputError("lab serving: the measured tables are missing; set LYNCEUS_DATA to their folder.")
    found = [
        _task(name, path)
        for name in FOLDERS
        for path in sorted((folder / name / "specs").glob("*.yaml"))
        if only in path.stem
    ]
    if not found:
        raise InputError(
            f"lab serving: {folder} has no job file with {only!r} in {' or '.join(FOLDERS)}; check the folder."
        )
    return found


def _task(folder: str, path: Path) -> Task:
    spec = Document.read(path).check(ReplaySpec)
    return Task(path.stem.split("_")[0], f"{folder}/{path.stem}", str(path), spec.objective)


def setting(task: Task, label: str) -> Setting:
    """What is replayed for a task and a policy: until a run within 10 % of the optimum."""
    options = OptionsSpec(objective=FORMULAS.get(task.objective) if label in _FORMULA_READERS else None)
    if label == WARM:
        options = options.model_copy(update=_warm(task))
    name = OURS if label in (AS_METRIC, WARM) else label
    return Setting(task.path, policy_text(name, "lab serving"), options, until=LEVEL)


def peer_setting(task: Task, usd: float) -> Setting:
    """The peer with the money of the default, rounded up to two digits: it takes up to a second for a suggestion."""
    unit = 10 ** (math.floor(math.log10(usd)) - 1)
    options = OptionsSpec(budget=BudgetSpec(usd=math.ceil(usd / unit - 1e-9) * unit))
    return Setting(task.path, policy_text(ArmSpec(peer=PEER), "lab serving"), options, until=LEVEL)


def _warm(task: Task) -> dict[str, Any]:
    """Runs that take their measuring time, on servers whose start is paid once for runs in a row on the same one."""
    table = JobTable.read(Path(task.path))
    boot_s = float(table.numbers("boot_s", "table").max())  # the same in every row: it follows from the model's weights
    columns = tuple(name for name in _DEPLOYMENT if name in table.table)
    return {"time": "time_s - boot_s", "billing": RateSection(boot=boot_s), "warm": columns}


def applies(label: str, task: Task) -> bool:
    """Whether a policy is compared on a task: only serving has deployments that stay warm, or an objective that is known in part."""
    return label not in (WARM, AS_METRIC) or task.objective in FORMULAS


def pilot_setting(task: Task) -> Setting:
    """LLM-Pilot's question with measurements: profile and pods for 200 users, with three hours of the cheapest profile."""
    options = OptionsSpec(objective=FORMULAS[task.objective])
    hourly = float(loaded(task.path, options).problem.price.min()) * 3600
    return Setting(
        task.path,
        policy_text(OURS, "lab serving"),
        OptionsSpec(objective=FORMULAS[task.objective], budget=BudgetSpec(usd=round(_FREE_HOURS * hourly, 6))),
        until="end",
    )


def is_pilot_task(task: Task) -> bool:
    """Whether a task is to choose a profile and the number of pods for 200 users."""
    return task.objective == "minimize fleet_usd_per_hour"


def cells(chosen: Sequence[Task], labels: Sequence[str], seeds: int) -> list[Cell]:
    """All replays of our policies, seed by seed."""
    labels = [label for label in labels if label != PEER]
    found = [setting(task, label) for task in chosen for label in labels if applies(label, task)]
    if OURS in labels:
        found += [pilot_setting(task) for task in chosen if is_pilot_task(task)]
    return [Cell(one, seed) for seed in range(seeds) for one in found]


Money = Mapping[str, Mapping[Task, Mapping[int, float]]]
"""Label → task → seed → dollars until a run within 10 % of the optimum; infinite: there was none."""


def money(chosen: Sequence[Task], labels: Sequence[str], seeds: int, store: Store) -> Money:
    """What the stored replays spent."""
    found: dict[str, dict[Task, dict[int, float]]] = {
        label: {
            task: {replay.seed: replay.reached(LEVEL).usd for replay in replays}
            for task in chosen
            if applies(label, task) and (replays := _read(setting(task, label), seeds, store))
        }
        for label in labels
        if label != PEER
    }
    if PEER in labels:
        settings = _peer_settings(chosen, seeds, store)
        found[PEER] = {
            task: {replay.seed: replay.reached(LEVEL).usd for replay in replays}
            for task, one in settings.items()
            if (replays := _read(one, seeds, store))
        }
    return found


def peer_cells(chosen: Sequence[Task], seeds: int, store: Store) -> list[Cell]:
    """The replays of the peer, once those of the default are there: both have the same money."""
    settings = _peer_settings(chosen, seeds, store)
    return [Cell(one, seed) for seed in range(seeds) for one in settings.values()]


def _peer_settings(chosen: Sequence[Task], seeds: int, store: Store) -> dict[Task, Setting]:
    ours = money(chosen, (OURS,), seeds, store)[OURS]
    return {task: peer_setting(task, median(by_seed)) for task, by_seed in ours.items()}


def median(by_seed: Mapping[int, float]) -> float:
    """The median over seeds; infinite if half of them never arrived."""
    return float(np.quantile(list(by_seed.values()), 0.5, method="higher"))


def commits(chosen: Sequence[Task], store: Store) -> list[str]:
    """The commits that the default's stored replays were made with, as far as their first seeds tell."""
    kept = [one for task in chosen for one in store.read(setting(task, OURS), range(1))]
    return sorted({str(one.made.get("commit", "unknown")) for one in kept})


def pilot_replays(chosen: Sequence[Task], seeds: int, store: Store) -> dict[Task, list[Replay]]:
    """The stored replays of LLM-Pilot's task."""
    return {task: _read(pilot_setting(task), seeds, store) for task in chosen if is_pilot_task(task)}


def _read(one: Setting, seeds: int, store: Store) -> list[Replay]:
    return [kept.replay for kept in store.read(one, range(seeds))]
