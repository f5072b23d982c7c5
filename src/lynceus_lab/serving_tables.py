"""Tables of `lynceus lab serving`, as Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from lynceus.replay.run import Replay
from lynceus_lab.early_ends import Ends
from lynceus_lab.markdown import header, interval, number, row
from lynceus_lab.serving import AS_METRIC, EQUAL_MONEY, OURS, RIVALS, WARM, Money, Task, median

_DRAWS = 1000


def best_rival(money: Money, task: Task) -> str:
    """The rival with the lowest median on a task."""
    return min(RIVALS, key=lambda label: median(money[label][task]))


def ratios(money: Money, label: str = OURS, pick: Callable[[Money, Task], str] = best_rival) -> dict[Task, float]:
    """Median money of a policy relative to that of another one, by task."""
    return {task: median(own) / median(money[pick(money, task)][task]) for task, own in money[label].items()}


def money_table(money: Money) -> Iterator[str]:
    """Money until a run within 10 % of the optimum, relative to the best of the rivals on each task."""
    yield from header(["measured by", "tasks", "mean ratio", "geometric mean", "cheaper on", "worst task"])
    found = ratios(money)
    resampled = _resampled(money)
    for name in (*sorted({task.group for task in found}), "all"):
        inside = [task for task in found if name in ("all", task.group)]
        means = [float(np.mean([each[task] for task in inside])) for each in resampled]
        logs = [float(np.exp(np.mean([np.log(each[task]) for task in inside]))) for each in resampled]
        worst = max(inside, key=lambda task: found[task])
        own = np.array([found[task] for task in inside])
        yield row(
            [
                *(f"**{name}**" if name == "all" else name, str(len(inside))),
                interval([float(own.mean()), *np.quantile(means, [0.025, 0.975]).tolist()]),
                interval([float(np.exp(np.log(own).mean())), *np.quantile(logs, [0.025, 0.975]).tolist()]),
                f"{(own < 1).mean():.0%}",
                f"{number(found[worst])} ({worst.name.partition('/')[2]}, {best_rival(money, worst)})",
            ]
        )


def _resampled(money: Money) -> list[dict[Task, float]]:
    """The ratios for seeds that are drawn with replacement, the same ones for all policies of a task."""
    rng = np.random.default_rng(0)
    labels = (OURS, *RIVALS)
    arrays = {
        task: np.array([[money[label][task][seed] for seed in sorted(own)] for label in labels])
        for task, own in money[OURS].items()
    }
    draws = []
    for _ in range(_DRAWS):
        one = {}
        for task, values in arrays.items():
            places = rng.integers(values.shape[1], size=values.shape[1])
            medians = np.quantile(values[:, places], 0.5, axis=1, method="higher")
            one[task] = float(medians[0] / medians[1:].min())
        draws.append(one)
    return draws


def rival_table(money: Money) -> Iterator[str]:
    """Every rival alone: which share of the tasks the default reaches with less money."""
    yield from header(["against", "tasks", "seeds", "mean ratio", "geometric mean", "ahead on"])
    for label in (*RIVALS, *EQUAL_MONEY):
        tasks = [task for task in money[OURS] if task in money.get(label, {})]
        if not tasks:
            continue
        seeds = min(len(money[label][task]) for task in tasks)
        # 0 where the other one never arrives, as staged searches that have committed themselves to the wrong machine.
        found = {task: median(money[OURS][task]) / median(money[label][task]) for task in tasks}
        finite = np.array([one for one in found.values() if np.isfinite(one) and one > 0])
        means = (
            [number(float(finite.mean())), number(float(np.exp(np.log(finite).mean())))] if finite.size else ["–"] * 2
        )
        lost = len(tasks) - len(finite)
        note = f" (without {lost} that it never finishes)" if lost else ""
        ahead = float(np.mean([one < 1 for one in found.values()]))
        yield row([label, str(len(tasks)), str(seeds), means[0] + note, means[1], f"{ahead:.0%}"])


def part_table(money: Money) -> Iterator[str]:
    """What knowing a part of the objective, and servers that stay warm, are worth."""
    yield from header(["", "tasks", "geometric mean", "cheaper or equal on"])
    for name, label, other in (
        ("objective as a formula, relative to the same as a metric", OURS, AS_METRIC),
        ("further loads on a warm server, relative to a server per load", WARM, OURS),
    ):
        if money.get(label) and money.get(other):
            compared = {
                task: median(own) / median(money[other][task])
                for task, own in money[label].items()
                if task in money[other]
            }
            own = np.array(list(compared.values()))
            yield row(
                [name, str(len(own)), number(float(np.exp(np.log(own).mean()))), f"{(own <= 1 + 1e-9).mean():.0%}"]
            )


def pilot_table(replays: Mapping[Task, Sequence[Replay]], limits_usd: Mapping[Task, float]) -> Iterator[str]:
    """LLM-Pilot's question, answered with measurements."""
    yield from header(
        ["task", "seeds", "success", "overspend, mean", "worst", "spent of the limit, mean", "trials, mean"]
    )
    kinds: dict[str, list[tuple[float, float]]] = {}
    for task, found in replays.items():
        cno = np.array([np.inf if one.cno_at_stop is None else one.cno_at_stop for one in found])
        spent = np.array([one.steps[-1].spent_usd / limits_usd[task] for one in found])
        kind = "limits on p95" if task.name.endswith("_tail") else "published limits"
        kinds.setdefault(kind, []).extend(zip(cno.tolist(), spent.tolist(), strict=True))
        trials = float(np.mean([len(one.steps) for one in found]))
        yield row([task.name.partition("/")[2], str(len(found)), *_pilot_cells(cno, spent), number(trials)])
    for kind, pairs in kinds.items():
        cno, spent = (np.array([pair[place] for pair in pairs]) for place in range(2))
        yield row([f"**{kind}**", str(len(pairs)), *_pilot_cells(cno, spent), ""])


def _pilot_cells(
    cno: np.ndarray[tuple[int], np.dtype[np.float64]], spent: np.ndarray[tuple[int], np.dtype[np.float64]]
) -> list[str]:
    good = np.isfinite(cno)
    over = cno[good] - 1
    return [f"{good.mean():.0%}", f"{over.mean():.1%}", f"{over.max():.1%}", f"{spent.mean():.0%}"]


def ends_table(found: Sequence[Ends]) -> Iterator[str]:
    """Measurements that were ended early."""
    yield from header(
        [
            "limits",
            "kept",
            "wrongly ended",
            "broken",
            "ended early",
            "money saved on these",
            "of the money for measuring",
        ]
    )
    for one in found:
        wrong = f"{one.wrong} ({one.wrong / max(one.kept, 1):.1%})"
        ended = f"{one.ended} ({one.ended / max(one.broken, 1):.0%})"
        yield row(
            [one.name, str(one.kept), wrong, str(one.broken), ended, f"{one.saved:.0%}", f"{one.saved_measuring:.0%}"]
        )
