"""Count the primes below a number; with several nodes, each counts its share. The first node reports its count."""

import argparse
import os
import time
from concurrent.futures import ProcessPoolExecutor


def count(first: int, last: int) -> int:
    found = 0
    for number in range(max(first, 2), last):
        if all(number % divisor for divisor in range(2, min(number, int(number**0.5) + 1))):
            found += 1
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--up-to", type=int, required=True)
    parser.add_argument("--processes", type=int, required=True)
    asked = parser.parse_args()
    rank, nodes = int(os.environ.get("LYNCEUS_NODE_RANK", "0")), int(os.environ.get("LYNCEUS_NUM_NODES", "1"))
    step = asked.up_to // 64
    mine = [first for index, first in enumerate(range(0, asked.up_to, step)) if index % nodes == rank]
    began = time.monotonic()
    with ProcessPoolExecutor(asked.processes) as pool:
        found = sum(pool.map(count, mine, [min(first + step, asked.up_to) for first in mine]))
    print(f"node {rank} of {nodes}: {found} primes in {time.monotonic() - began:.1f} s", flush=True)
    if rank == 0:
        print(f'::lynceus {{"primes": {found}}}')


if __name__ == "__main__":
    main()
