"""The record of a study: what was ordered, what happened, why it ended. Whatever can be computed from it is computed again."""

from lynceus.ledger.memory import Ledger, MemoryLedger

__all__ = ["Ledger", "MemoryLedger"]
