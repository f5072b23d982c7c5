"""The page that `lynceus lab serving` prints: what was run, and its tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lynceus_lab.early_ends import curve_ends, stream_ends
from lynceus_lab.fingerprint import provenance
from lynceus_lab.serving import OURS, RIVALS, Task, commits, money, pilot_replays, pilot_setting
from lynceus_lab.serving_tables import ends_table, money_table, part_table, pilot_table, rival_table
from lynceus_lab.trace_store import Store


def lines(chosen: Sequence[Task], labels: Sequence[str], seeds: int, store: Store) -> Iterator[str]:
    """All tables of the stored replays, and how ending measurements early would do."""
    yield (
        f"{len(chosen)} tasks, seeds 0 to {seeds - 1}; machine: {provenance()['machine']}; replays of commit "
        f"{', '.join(commits(chosen, store)) or '–'}. Money until a run within "
        "10 % of the optimum; ratios of medians over seeds; 95 % intervals from a bootstrap over seeds."
    )
    spent = money(chosen, labels, seeds, store)
    if all(spent.get(label) for label in (OURS, *RIVALS)):
        yield from ("", "**Money, relative to the best of the rivals on each task**", "")
        yield from money_table(spent)
    if spent.get(OURS):
        yield from ("", "**Each rival alone**", "")
        yield from rival_table(spent)
        yield from ("", "**What the parts are worth**", "")
        yield from part_table(spent)
        yield from ("", "**LLM-Pilot's question: profile and pods for 200 users**", "")
        replays = {task: found for task, found in pilot_replays(chosen, seeds, store).items() if found}
        yield from pilot_table(replays, {task: _limit_usd(task) for task in replays})
    yield from ("", "**Measurements ended early**", "")
    yield from ends_table([*stream_ends(seeds), *curve_ends()])


def _limit_usd(task: Task) -> float:
    budget = pilot_setting(task).options.budget
    return float("inf") if budget is None or budget.usd is None else budget.usd
