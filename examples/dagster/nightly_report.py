"""A Dagster asset that runs a recurring job with the configuration that Lynceus keeps right, one partition per day:

    dagster asset materialize --select nightly_report --partition 2026-11-01 -f nightly_report.py

A try that was killed loses nothing: the job goes on, and the next try for the same day waits for that run instead of starting another.
"""

import os

import dagster

import lynceus

STORAGE = os.environ.get("LYNCEUS_STORAGE", "sqlite:///lynceus.db")


@dagster.asset(
    partitions_def=dagster.DailyPartitionsDefinition("2026-11-01"),
    retry_policy=dagster.RetryPolicy(max_retries=2, delay=1),
)
def nightly_report(context: dagster.AssetExecutionContext) -> dagster.MaterializeResult:
    """The report of a day; a try after a run that failed is a new run."""
    job = lynceus.load_job("nightly-report", storage=STORAGE)
    run = job.execute(task=f"dagster/nightly-report/{context.partition_key}", input="2MB")
    return dagster.MaterializeResult(
        metadata={"run_id": run.run_id, "version": run.version, "runtime_s": run.seconds, "cost_usd": run.cost_usd}
    )


defs = dagster.Definitions(
    assets=[nightly_report],
    schedules=[dagster.build_schedule_from_partitioned_job(dagster.define_asset_job("nightly", [nightly_report]))],
)
