"""Count the primes below a number with several worker processes, one segment of the sieve at a time."""

import argparse
import json
import math
import multiprocessing
import os


def small_primes(most: int) -> list[int]:
    sieve = bytearray([1]) * (most + 1)
    sieve[:2] = b"\0\0"
    for number in range(2, math.isqrt(most) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, most + 1, number)))
    return [number for number, prime in enumerate(sieve) if prime]


def count_in(segment: tuple[int, int]) -> int:
    low, high = segment
    prime = bytearray([1]) * (high - low)
    for number in small_primes(math.isqrt(high)):
        start = max(number * number, (low + number - 1) // number * number)
        prime[start - low :: number] = bytes(len(range(start, high, number)))
    return sum(prime)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--below", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--chunk", type=int, required=True)
    options = parser.parse_args()
    segments = [(low, min(low + options.chunk, options.below)) for low in range(2, options.below, options.chunk)]
    found = 0
    with multiprocessing.Pool(options.workers) as pool:
        for done, count in enumerate(pool.imap_unordered(count_in, segments), start=1):
            found += count
            if done % max(1, len(segments) // 20) == 0:
                # Report without lynceus.report: append a JSON line to the file that Lynceus names. Outside a trial the variable is not set.
                with open(os.environ.get("LYNCEUS_RESULT", os.devnull), "a") as file:
                    file.write(json.dumps({"progress": done / len(segments)}) + "\n")
    print(f"{found} primes below {options.below}")


if __name__ == "__main__":
    main()
