"""Join sales with shops, aggregate per region and day, and sort: a job with two shuffles on a standalone cluster."""

import argparse
import sys
import time

import cluster
from pyspark.sql import SparkSession
from pyspark.sql import functions as f

ROWS = 200_000
TRY_AGAIN = 75
"""Exit code for a failure of the cluster rather than of the configuration."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", choices=["small", "large", "both"], required=True)
    parser.add_argument("--executors", type=int, required=True)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--memory", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    options = parser.parse_args()
    if cluster.status() != 0:
        print("the cluster is not running; start it with: python3 cluster.py start", file=sys.stderr)
        sys.exit(TRY_AGAIN)

    settings = {
        "spark.driver.extraJavaOptions": cluster.FRUGAL,
        "spark.executor.extraJavaOptions": cluster.FRUGAL,
        "spark.executor.memory": options.memory,
        "spark.executor.cores": options.cores,
        "spark.cores.max": options.cores * options.executors,
        "spark.sql.shuffle.partitions": options.partitions,
        "spark.sql.adaptive.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "30s",
    }
    if options.workers != "both":
        settings[f"spark.executor.resource.{options.workers}.amount"] = 1
        settings[f"spark.task.resource.{options.workers}.amount"] = 0.01
    builder = SparkSession.builder.appName("sales").master(cluster.MASTER)
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    began = time.monotonic()
    sales = spark.range(ROWS, numPartitions=options.partitions).select(
        (f.col("id") % 5003).alias("shop"), (f.col("id") % 365).alias("day"), (f.rand(seed=1) * 100).alias("amount")
    )
    shops = spark.range(5003).select(f.col("id").alias("shop"), (f.col("id") % 47).alias("region"))
    totals = (
        sales.join(shops.hint("merge"), "shop")
        .groupBy("region", "day")
        .agg(f.sum("amount").alias("total"))
        .orderBy("total")
    )
    count = totals.count()
    seconds = time.monotonic() - began
    executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1  # the driver is one of them
    print(f"{count} totals on {executors} executors, rows per second: {ROWS / seconds:.0f}")
    spark.stop()


if __name__ == "__main__":
    main()
