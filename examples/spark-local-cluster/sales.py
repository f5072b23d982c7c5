"""Join sales with shops, aggregate per region and day, sort: two shuffles on executors that are separate processes."""

import argparse
import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

ROWS = 300_000


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--executors", type=int, required=True)
    parser.add_argument("--cores", type=int, required=True)
    parser.add_argument("--memory", required=True)
    parser.add_argument("--partitions", type=int, required=True)
    options = parser.parse_args()

    megabytes = int(options.memory[:-1]) * (1024 if options.memory.endswith("g") else 1)
    spark = (
        SparkSession.builder.appName("sales")
        .master(f"local-cluster[{options.executors},{options.cores},{megabytes}]")
        .config("spark.executor.memory", options.memory)
        .config("spark.executor.cores", options.cores)
        .config("spark.sql.shuffle.partitions", options.partitions)
        .config("spark.sql.adaptive.enabled", "false")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.executorEnv.PYSPARK_PYTHON", sys.executable)
        .getOrCreate()
    )
    began = time.monotonic()
    sales = spark.range(ROWS).select(
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
    print(f"{count} totals, rows per second: {ROWS / (time.monotonic() - began):.0f}")
    spark.stop()


if __name__ == "__main__":
    main()
