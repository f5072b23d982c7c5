"""A Prefect flow that runs a recurring job with the configuration that Lynceus keeps right: python nightly_report.py DAY [ARGUMENT …].

A try that was killed loses nothing: the job goes on, and the next try for the same day waits for that run instead of starting another.
"""

import os
import sys
from datetime import date

from prefect import flow, task

import lynceus

STORAGE = os.environ.get("LYNCEUS_STORAGE", "sqlite:///lynceus.db")


@task(retries=2, retry_delay_seconds=1)
def run_job(day: str, arguments: list[str]) -> float:
    """Run the job once for a day; a try after a run that failed is a new run."""
    job = lynceus.load_job("nightly-report", storage=STORAGE)
    run = job.execute(task=f"prefect/nightly-report/{day}", input="2MB", arguments=arguments)
    print(f"run {run.run_id}, version {run.version}: {run.seconds:.1f} s, ${run.cost_usd:.6f}")
    return run.seconds


@flow(log_prints=True)
def nightly_report(day: str, arguments: list[str]) -> float:
    return run_job(day, arguments)


if __name__ == "__main__":
    nightly_report(sys.argv[1] if len(sys.argv) > 1 else str(date.today()), sys.argv[2:])
