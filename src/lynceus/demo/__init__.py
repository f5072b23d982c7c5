"""The demo: a job made of formulas, explored while one watches, compared and drawn."""

from lynceus.demo.compare import Summary, background, collect, in_order, summarise, tasks
from lynceus.demo.course import Course, course_of, run_study
from lynceus.demo.job import BUDGET_USD, Job, demo_job
from lynceus.demo.picture import draw
from lynceus.demo.report import Result, as_record, comparison, recommendation
from lynceus.demo.screen import Screen, header
from lynceus.demo.words import Tally, plain_line

__all__ = [
    "BUDGET_USD",
    "Course",
    "Job",
    "Result",
    "Screen",
    "Summary",
    "Tally",
    "as_record",
    "background",
    "collect",
    "comparison",
    "course_of",
    "demo_job",
    "draw",
    "header",
    "in_order",
    "plain_line",
    "recommendation",
    "run_study",
    "summarise",
    "tasks",
]
