"""Count primes below a number with worker processes. More cores help, up to a point."""

import argparse
import json
import os
import time
from multiprocessing import Pool


def primes(span: tuple[int, int]) -> int:
    """The number of primes in a half-open interval."""
    first, last = span
    found = 0
    for number in range(max(first, 2), last):
        if all(number % divisor for divisor in range(2, int(number**0.5) + 1)):
            found += 1
    return found


def main() -> None:
    """Divide the numbers among the workers and report the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--below", type=int, default=400_000)
    parser.add_argument("--workers", type=int, required=True)
    given = parser.parse_args()
    step = 10_000
    began = time.monotonic()
    with Pool(given.workers) as pool:
        count = sum(
            pool.imap_unordered(primes, [(at, min(at + step, given.below)) for at in range(0, given.below, step)])
        )
    rate = given.below / (time.monotonic() - began)
    with open(os.environ.get("LYNCEUS_RESULT", os.devnull), "a", encoding="utf-8") as results:
        results.write(json.dumps({"primes": count, "numbers_per_s": rate}) + "\n")


if __name__ == "__main__":
    main()
