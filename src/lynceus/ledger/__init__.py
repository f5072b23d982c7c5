"""The record of a study: what was ordered, what happened, why it ended. Whatever can be computed from it is computed again."""

from lynceus.ledger.ledger import Ledger, OpenRun, Wish
from lynceus.ledger.memory import MemoryLedger
from lynceus.ledger.still import StillLedger

__all__ = ["Ledger", "MemoryLedger", "OpenRun", "StillLedger", "Wish"]
