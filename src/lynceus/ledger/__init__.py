"""The record of a study: what was ordered, what happened, why it ended. Whatever can be computed from it is computed again."""

from lynceus.ledger.ledger import Ledger, OpenRun, Wish
from lynceus.ledger.memory import MemoryLedger

__all__ = ["Ledger", "MemoryLedger", "OpenRun", "Wish"]
