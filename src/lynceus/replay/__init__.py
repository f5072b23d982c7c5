"""Replay: run any policy on a table of measured runs, with many seeds, and count the money until the result was good."""

from lynceus.replay.campaign import Campaign, Progress, run_campaign
from lynceus.replay.job import ReplayJob, load_job, table_present
from lynceus.replay.run import Replay, Step, replay
from lynceus.replay.score import LEVELS, Optimum, Reached, optimum
from lynceus.replay.shipped import shipped_jobs
from lynceus.replay.summary import Level, Quantiles, Summary, summarise

__all__ = [
    "LEVELS",
    "Campaign",
    "Level",
    "Optimum",
    "Progress",
    "Quantiles",
    "Reached",
    "Replay",
    "ReplayJob",
    "Step",
    "Summary",
    "load_job",
    "optimum",
    "replay",
    "run_campaign",
    "shipped_jobs",
    "summarise",
    "table_present",
]
