"""Write nightly-etl.csv: the made-up table of the replay job `example/nightly-etl`.

Nobody measured these times. They follow from the formulas below and a seeded noise, so that `lynceus replay` has a table at hand
wherever Lynceus is installed. Run this file to write the table again; every run writes the same bytes.
"""

import csv
import io
import math
import random
from pathlib import Path

TABLE = Path(__file__).with_name("nightly-etl.csv")
SEED = 20
MACHINES = {"general": (4, 16, 0.20), "compute": (4, 8, 0.17), "memory": (4, 32, 0.26), "large": (8, 32, 0.42)}
"""Cores, GB of memory and dollars per hour of one machine."""
NODES = (1, 2, 3, 4, 6, 8, 12)
PARTITIONS = (32, 128, 512)
CODECS = {"lz4": (1.0, 1.0), "zstd": (1.12, 0.6)}
"""Work on the processors and bytes between machines, relative to lz4."""
CORE_SECONDS, DATA_GB, SERIAL_S, NOISE = 9000.0, 60.0, 40.0, 0.04


def seconds(machine: str, nodes: int, partitions: int, codec: str) -> float:
    """The time of a run without noise: a serial part, work on all cores, data between machines, spilling, and tasks to schedule."""
    cores_each, memory_gb, _ = MACHINES[machine]
    cores, (work, volume) = cores_each * nodes, CODECS[codec]
    speed = 1.25 if machine == "compute" else 1.0
    waves = math.ceil(partitions / cores) * cores / partitions  # the last wave leaves cores idle
    processing = CORE_SECONDS * work / (cores * speed) * waves
    exchange = DATA_GB * volume * (nodes - 1) / nodes * (3.0 + 0.6 * nodes) / nodes
    task_gb = 2.5 * DATA_GB / partitions
    short_gb = max(0.0, task_gb * cores_each - 0.6 * memory_gb) + max(0.0, DATA_GB - 2.0 * memory_gb * nodes) / nodes
    return SERIAL_S + processing * (1 + 0.35 * short_gb / memory_gb) + 22.0 * short_gb + exchange + 0.05 * partitions


def table() -> str:
    """The whole table as CSV."""
    noise, text = random.Random(SEED), io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(("machine", "nodes", "partitions", "codec", "cores", "memory_gb", "time_s", "price_usd_per_hour"))
    for machine, (cores, memory_gb, usd) in MACHINES.items():
        for nodes in NODES:
            for partitions in PARTITIONS:
                for codec in CODECS:
                    time_s = seconds(machine, nodes, partitions, codec) * math.exp(noise.gauss(0, NOISE))
                    words = (machine, nodes, partitions, codec, cores * nodes, memory_gb * nodes)
                    lines.writerow((*words, f"{time_s:.1f}", f"{usd * nodes:.2f}"))
    return text.getvalue()


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
