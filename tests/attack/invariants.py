"""What must hold after every step, computed from the ledger alone."""

import math
from dataclasses import dataclass, field

from attack.ledger import Entry, Ledger

ROUNDING = 1e-6
"""Dollars that sums of charges may be off."""


@dataclass
class Watch:
    """Compares a ledger with what it was after the step before."""

    budget_usd: float
    _settled: dict[int, Entry] = field(default_factory=dict)
    _entries: int = 0
    _added_usd: float = 0.0
    _overdrawn: bool = False

    def check(self, ledger: Ledger) -> None:
        assert [one.number for one in ledger.entries] == list(range(len(ledger.entries))), "numbers have gaps"
        self._check_nothing_changed(ledger)
        self._check_budget(ledger)

    def _check_nothing_changed(self, ledger: Ledger) -> None:
        """A settled trial stays as it is."""
        assert len(ledger.entries) >= self._entries, "a trial disappeared"
        for number, before in self._settled.items():
            assert ledger.entries[number] == before, f"settled trial {number} changed"
        self._settled = {one.number: one for one in ledger.entries if one.settled}

    def _check_budget(self, ledger: Ledger) -> None:
        """Only overruns that the ledger names exceed the budget, and nothing starts after them."""
        budget = self.budget_usd + ledger.added_usd
        committed = ledger.spent_usd + ledger.reserved_usd
        overruns = [one for one in ledger.entries if one.overran]
        excess = math.fsum(one.charged_usd - one.reserved_usd for one in overruns)
        assert committed <= budget + excess + ROUNDING, f"${committed} of ${budget} with overruns of ${excess}"
        for one in overruns:
            assert one.detail, (
                f"trial {one.number} was charged {one.charged_usd} of {one.reserved_usd}, and nothing says why"
            )
        new = [one for one in ledger.entries[self._entries :] if one.purpose != "import"]
        if self._overdrawn and ledger.added_usd == self._added_usd:
            assert not new, f"trials {[one.number for one in new]} started although the budget was overdrawn"
        self._overdrawn = committed > budget + ROUNDING
        self._entries, self._added_usd = len(ledger.entries), ledger.added_usd
