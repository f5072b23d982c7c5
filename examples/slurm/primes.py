"""Count the primes below a number; each task of a Slurm step counts its share of the chunks."""

import argparse
import os


def primes(low: int, high: int) -> int:
    """Count the primes in [low, high) with a segmented sieve."""
    numbers = bytearray([1]) * (high - low)
    for divisor in range(2, int(high**0.5) + 1):
        start = max(divisor * divisor, (low + divisor - 1) // divisor * divisor)
        numbers[start - low :: divisor] = bytes(len(range(start, high, divisor)))
    return sum(numbers)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--below", type=int, required=True)
    asked.add_argument("--chunk", type=int, required=True)
    words = asked.parse_args()
    task, tasks = int(os.environ.get("SLURM_PROCID", 0)), int(os.environ.get("SLURM_NTASKS", 1))
    starts = range(2 + task * words.chunk, words.below, tasks * words.chunk)
    found = sum(primes(low, min(low + words.chunk, words.below)) for low in starts)
    print(f"task {task} of {tasks} on {os.environ.get('SLURMD_NODENAME', 'this machine')}: {found} primes", flush=True)


if __name__ == "__main__":
    main()
