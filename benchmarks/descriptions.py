"""How much the description of a table matters: the same jobs with columns as they come, by sizes only, by names only, and as shipped.

    python -m benchmarks.descriptions --seeds 5

Dollars until a run within 10 % of the optimum, in runs of the optimum: the geometric mean over jobs and seeds of each family. Two models
are compared: the default's, and the same with every fact read once (`inputs: facts and price`). Needs the measured jobs (LYNCEUS_DATA).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lynceus.policy.policy import Policy
from lynceus.policy.policy_file import compose, describe
from lynceus.policy.presets import preset
from lynceus.replay.job import load_job
from lynceus.replay.run import replay
from lynceus.replay.shipped import shipped_jobs

NEAR = 1.1
DISKS = ["disk_type", "disk_speed", "disk_count"]
COLUMNS: dict[str, dict[str, list[str]]] = {
    "scout": {
        "as they come": [
            *("vm_type", "vm_family", "vm_size", "nodes"),
            *("vm_vcpus", "vm_ram_gb", "vm_ghz", "vm_ebs_mbps"),
        ],
        "sizes": ["vm_vcpus", "vm_ram_gb", "vm_ghz", "vm_ebs_mbps", "nodes"],
        "names": ["vm_type", "nodes"],
    },
    "cherrypick": {
        "as they come": [
            *("vm_type", "vm_family", "vm_size", "machines"),
            *("vm_vcpus", "vm_ram_gb", "vm_speed", *DISKS),
        ],
        "sizes": ["vm_vcpus", "vm_ram_gb", "vm_speed", "machines", *DISKS],
        "names": ["vm_type", "machines", *DISKS],
    },
}
"""The columns of each description, all of them parameters, with no more said about them. Scout and CherryPick hold the same facts in all
three, but for two machine types of CherryPick that differ only in their disks."""


def policies() -> dict[str, Policy]:
    """The default with each way to read the columns."""
    return {
        inputs: compose(reading(describe(preset("lynceus")), inputs))
        for inputs in ("sizes and price", "facts and price")
    }


def reading(part: Any, inputs: str) -> Any:
    """A policy in plain data whose Gaussian processes read these inputs."""
    if isinstance(part, list):
        return [reading(one, inputs) for one in part]
    if not isinstance(part, dict):
        return part
    own = {"inputs": inputs} if part.get("kind") == "gaussian-process" else {}
    return {key: reading(value, inputs) for key, value in part.items()} | own


def described_jobs(family: str, folder: Path) -> Iterator[tuple[str, str | Path]]:
    """(description, job) of every job of a family."""
    for name, path in shipped_jobs().items():
        if not name.startswith(f"{family}/"):
            continue
        yield "shipped", name
        for description, columns in COLUMNS.get(family, {}).items():
            spec = {"name": name, "table": f"{name}.csv", "parameters": columns, "deadline": {"quantile": 0.5}}
            written = folder / f"{path.stem}-{description.replace(' ', '-')}.yaml"
            written.write_text(json.dumps(spec))
            yield description, written


def main() -> None:
    """Replay and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--families", nargs="*", default=list(COLUMNS), help="also families that are only shipped")
    arguments = parser.parse_args()
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for family in arguments.families:
            for description, spec in described_jobs(family, Path(folder)):
                job = load_job(spec)
                for inputs, policy in policies().items():
                    for seed in range(arguments.seeds):
                        usd = replay(job, policy, seed, until=NEAR).reached(NEAR).usd
                        found[family, description, inputs].append(usd / job.optimum.cost_usd)
            print(f"{family}: done", file=sys.stderr)
    print(f"{'family':12}{'description':14}{'model reads':18}{'replays':>8}{'mean':>8}{'p90':>8}")
    for (family, description, inputs), runs in found.items():
        mean, high = np.exp(np.log(runs).mean()), np.quantile(runs, 0.9)
        print(f"{family:12}{description:14}{inputs:18}{len(runs):8d}{mean:8.2f}{high:8.2f}")


if __name__ == "__main__":
    main()
