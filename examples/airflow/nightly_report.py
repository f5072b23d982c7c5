"""A DAG that runs a recurring job with the configuration that Lynceus keeps right."""

from datetime import datetime, timedelta

from airflow.sdk import dag

from lynceus.integrations.airflow import LynceusConfig, LynceusRun


@dag(schedule="@daily", start_date=datetime(2026, 1, 1), catchup=False, params={"mode": "fast", "size": "2MB"})
def nightly_report():
    """Read the configuration for the log, then run the job."""
    show = LynceusConfig(task_id="show", job="nightly-report", to="env")
    run = LynceusRun(
        task_id="run",
        job="nightly-report",
        input="{{ params.size }}",
        arguments=["{{ params.mode }}"],
        retries=2,
        retry_delay=timedelta(seconds=2),
    )
    show >> run


nightly_report()
