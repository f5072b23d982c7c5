"""The tables of a storage. Trials are updated in place as they move from ordered to settled; `events` only grows.

Every change of a study takes the next number of `studies.sequence` and writes it beside what it changed, so that a reader fetches only
rows that are newer than what it has.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    false,
)

metadata = MetaData()

Facts = JSON(none_as_null=True)

settings = Table(
    "settings",
    metadata,
    Column("name", String(100), primary_key=True),
    Column("value", Text, nullable=False),
)

studies = Table(
    "studies",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("identity", String(16), nullable=False),  # tells it apart from a deleted study of the same name
    Column("created_s", Float(53), nullable=False),  # seconds since the epoch, as all moments here
    Column("document", Facts, nullable=False),  # the job file; secrets only by name, no password of the storage
    Column("fingerprint", String(64), nullable=False),  # of the problem, see lynceus.storage.sql.storage.fingerprint
    Column("policy", Facts, nullable=False),
    Column("seed", BigInteger, nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("settled", Integer, nullable=False),  # how many trials have settled
    Column("wish", String(10), nullable=False),  # the requested state
    Column("because", String(20)),  # why it is over or paused; null while it goes on
    Column("reason", Text),
    Column("resumed_at", Integer, nullable=False),
    Column("added_usd", Float(53), nullable=False),
    Column("active_s", Float(53), nullable=False),  # seconds in which a worker was active
    Column("seen_s", Float(53), nullable=False),  # when a worker was last active
    Column("queue", Facts, nullable=False),  # rows that the user wants next
    Column("limits", Facts),  # changes of the constraints since it began; null for none
    Column("added_trials", Integer, nullable=False),
    Column("project", String(200), index=True),  # who pays for it, see lynceus.trial.shared_budget; null for nobody
    Column("owner", String(200), index=True),
)

trials = Table(
    "trials",
    metadata,
    Column("study_id", Integer, ForeignKey("studies.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("sequence", Integer, nullable=False),  # of the last change
    Column("rank", Integer),  # order of settling; null while open
    Column("params", Facts, nullable=False),  # the configuration
    Column("ordered", Facts, nullable=False),  # see lynceus.storage.serialization
    Column("outcome", Facts),
    Column("told", Facts),  # the training target
    Column("ticket", Text),
    Column("worker", Text),
    Column(
        "epoch", Integer, nullable=False, server_default="0"
    ),  # raised with every takeover; writers of an older one are refused
    Column("lease_s", Float(53)),  # until when nobody may take it over, by the clock of `lease_clock`
    Column("lease_clock", String(40)),  # see lynceus.storage.sql.clock
    Column("ordered_s", Float(53), nullable=False),
    Column("launched_s", Float(53)),
    Column("heartbeat_s", Float(53)),
    Column("settled_s", Float(53)),
    Column("unwanted", Boolean, nullable=False, server_default=false()),  # the user wants this run to end
)
Index("trials_by_sequence", trials.c.study_id, trials.c.sequence)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("study_id", Integer, ForeignKey("studies.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("at_s", Float(53), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("number", Integer),
    Column("worker", Text),
    Column("detail", Facts),
)

answers = Table(
    "answers",
    metadata,
    Column("key", String(200), primary_key=True),  # an idempotency key, chosen by the client
    Column("study_id", Integer, ForeignKey("studies.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("request", String(64), nullable=False),  # SHA-256 of what was asked: a key belongs to one request
    Column("answer", Facts, nullable=False),
    Column("at_s", Float(53), nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("identity", String(16), nullable=False),
    Column("created_s", Float(53), nullable=False),
    Column("document", Facts, nullable=False),  # the job file, or the problem of a program; as of a study
    Column("settings", Facts, nullable=False),  # see lynceus.recurring.record
    Column("studies", Facts, nullable=False),  # names of the studies whose trials tell of it, oldest first
    Column("sequence", Integer, nullable=False),  # raised with every change
    Column("current", Integer, nullable=False),  # the version in production
    Column("canary", Facts),  # the version that one run tries; null while none does
    Column("lease_s", Float(53)),  # until when no other run may try one, by the clock of `lease_clock`
    Column("lease_clock", String(40)),
    Column("project", String(200), index=True),  # as of a study
    Column("owner", String(200), index=True),
)
"""Recurring jobs: what schedulers run in production."""

job_versions = Table(
    "job_versions",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True, autoincrement=False),  # from 1
    Column("params", Facts, nullable=False),  # the configuration
    Column("at_s", Float(53), nullable=False),
    Column("source", String(20), nullable=False),
    Column("author", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("facts", Facts, nullable=False),  # evidence, expected effect and basis
)
"""Configurations of recurring jobs; rows are never changed."""

job_runs = Table(
    "job_runs",
    metadata,
    Column("job_id", Integer, ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
    Column("run_id", String(200), primary_key=True),  # of the scheduler: a run is recorded once
    Column("sequence", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("ended_s", Float(53), nullable=False),
    Column("recorded_s", Float(53), nullable=False),
    Column("facts", Facts, nullable=False),  # see lynceus.storage.job_serialization
)
"""Production runs; rows are never changed."""
Index("job_runs_by_sequence", job_runs.c.job_id, job_runs.c.sequence)

job_changes = Table(
    "job_changes",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("job_id", Integer, ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("at_s", Float(53), nullable=False),
    Column("kind", String(20), nullable=False),
    Column("author", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("version", Integer),
    Column("facts", Facts, nullable=False),  # evidence, expected effect, what it cost
)
"""The audit of recurring jobs: only grows."""

budgets = Table(
    "budgets",
    metadata,
    Column("kind", String(10), primary_key=True),  # project or owner
    Column("name", String(200), primary_key=True),
    Column("usd", Float(53), nullable=False),  # dollars in a calendar month, UTC
)
"""Budgets that studies share. What is used of them is computed from the runs, and never stored."""

past_charges = Table(
    "past_charges",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("project", String(200)),
    Column("owner", String(200)),
    Column("month_s", Float(53), nullable=False, index=True),  # when the month began
    Column("usd", Float(53), nullable=False),
)
"""What deleted studies and jobs were charged in the month in which they were deleted: deleting a study gives no money back."""

audit = Table(
    "audit",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("at_s", Float(53), nullable=False, index=True),
    Column("author", Text, nullable=False),
    Column("kind", String(20), nullable=False),
    Column("subject", Text, nullable=False),  # the study, the account or the token that was changed
    Column("detail", Facts),
)
"""Who created, renamed and deleted studies, and changed budgets and tokens; only grows. Other changes are in `events` and `job_changes`."""

tokens = Table(
    "tokens",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("role", String(10), nullable=False),
    Column("digest", String(64), nullable=False, unique=True),  # SHA-256 of the secret, which is stored nowhere
    Column("created_s", Float(53), nullable=False),
    Column("created_by", Text, nullable=False),
    Column("last_used_s", Float(53)),
    Column("expires_s", Float(53)),
)
"""Named tokens of the server. A revoked one has no row any more; `audit` knows of it."""

token_sessions = Table(
    "token_sessions",
    metadata,
    Column("digest", String(64), primary_key=True),  # SHA-256 of the cookie
    Column("token_id", Integer, ForeignKey("tokens.id", ondelete="CASCADE"), nullable=False, index=True),
    Column("expires_s", Float(53), nullable=False),
)
"""Browsers that have signed in with a named token; they are signed out with it."""
