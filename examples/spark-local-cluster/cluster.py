"""A standalone Spark cluster on this machine: a master and two workers of different sizes, each in its own process.

    python3 cluster.py start     # start it and print the master's address; does nothing if the cluster is running
    python3 cluster.py status    # exit code 0 if the master and both workers are running
    python3 cluster.py stop

The large worker has two cores and 3 GB, the small one has one core and 1.5 GB. Each offers a custom resource with its own name, with which
a Spark application selects the workers for its executors.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyspark

FOLDER = Path(__file__).resolve().parent / ".cluster"
PORT = int(os.environ.get("SPARK_DEMO_PORT", "17077"))
MASTER = f"spark://127.0.0.1:{PORT}"
WORKERS = {"large": (2, "3g"), "small": (1, "1536m")}
PATIENCE_S = 240.0
FRUGAL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""JVMs that run for seconds, or mostly wait, do not benefit from the optimizing compiler or from parallel garbage collectors."""


def spark_class(name: str, log: str, *arguments: str) -> int:
    """Start a Spark daemon in its own session and return its process ID."""
    home = Path(pyspark.__file__).parent
    environment = {**os.environ, "SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "384m"}
    environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_DAEMON_JAVA_OPTS": FRUGAL}
    with (FOLDER / f"{log}.log").open("ab") as output:
        started = subprocess.Popen(
            [str(home / "bin" / "spark-class"), name, *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    (FOLDER / f"{log}.pid").write_text(str(started.pid))
    return started.pid


def worker(name: str) -> None:
    """Start a worker that offers its name as a custom resource."""
    cores, memory = WORKERS[name]
    script, settings = FOLDER / f"find-{name}.sh", FOLDER / f"{name}.conf"
    found = json.dumps({"name": name, "addresses": [str(place) for place in range(cores)]})
    script.write_text(f"#!/bin/sh\necho '{found}'\n")
    script.chmod(0o755)
    settings.write_text(
        f"spark.worker.resource.{name}.amount {cores}\nspark.worker.resource.{name}.discoveryScript {script}\n"
        "spark.worker.cleanup.enabled true\n"
    )
    spark_class(
        "org.apache.spark.deploy.worker.Worker",
        name,
        *("--host", "127.0.0.1", "--webui-port", "0", "--cores", str(cores), "--memory", memory),
        *("--work-dir", str(FOLDER / f"work-{name}"), "--properties-file", str(settings), MASTER),
    )


def alive(name: str) -> bool:
    """Whether this daemon is running."""
    try:
        words = Path("/proc", (FOLDER / f"{name}.pid").read_text(), "cmdline").read_bytes()
    except OSError:
        return False
    return b"org.apache.spark.deploy" in words


def registered() -> bool:
    """Whether both workers have registered with the master."""
    try:
        log = (FOLDER / "master.log").read_text(errors="replace")
    except OSError:
        return False
    return log.count("Registering worker") >= len(WORKERS)


def listening() -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", PORT)) == 0


def start() -> int:
    if status() == 0:
        print(MASTER)
        return 0
    stop()
    if listening():
        print(f"port {PORT} is in use; set SPARK_DEMO_PORT to another one", file=sys.stderr)
        return 1
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / "master.log").unlink(missing_ok=True)
    ui = ("--webui-port", "0")
    spark_class("org.apache.spark.deploy.master.Master", "master", "--host", "127.0.0.1", "--port", str(PORT), *ui)
    end = time.monotonic() + PATIENCE_S
    while not listening() and time.monotonic() < end:
        time.sleep(0.2)
    for name in WORKERS:
        worker(name)
    while not registered() and time.monotonic() < end:
        time.sleep(0.2)
    if status() != 0:
        print(f"the cluster did not start; see {FOLDER}/*.log", file=sys.stderr)
        stop()
        return 1
    print(MASTER)
    return 0


def status() -> int:
    return 0 if registered() and all(alive(name) for name in ("master", *WORKERS)) else 1


def stop() -> int:
    for name in (*WORKERS, "master"):
        if alive(name):
            os.killpg(int((FOLDER / f"{name}.pid").read_text()), signal.SIGTERM)
    end = time.monotonic() + 20.0
    while any(alive(name) for name in (*WORKERS, "master")) and time.monotonic() < end:
        time.sleep(0.1)
    for note in FOLDER.glob("*.pid"):
        note.unlink()
    return 0


if __name__ == "__main__":
    actions = {"start": start, "status": status, "stop": stop}
    if len(sys.argv) != 2 or sys.argv[1] not in actions:
        sys.exit(__doc__)
    sys.exit(actions[sys.argv[1]]())
