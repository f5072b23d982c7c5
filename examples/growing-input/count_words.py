"""Count the words of a made-up text: count_words.py WORKERS PIECE_KB; its size in megabytes is in MEGABYTES."""

import os
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor

WORDS = [f"word{number % 997}" for number in range(4096)]


def count(piece: tuple[int, int]) -> Counter[str]:
    """The words of a piece of the text, which is the same wherever it is made."""
    start, size = piece
    text = " ".join(WORDS[(start + place) % len(WORDS)] for place in range(size // 8))
    return Counter(text.split())


def main() -> None:
    workers, piece = int(sys.argv[1]), int(sys.argv[2]) * 1000
    size = int(float(os.environ["MEGABYTES"]) * 1_000_000)
    pieces = [(start, min(piece, size - start)) for start in range(0, size, piece)]
    total: Counter[str] = Counter()
    with ProcessPoolExecutor(workers) as pool:
        for found in pool.map(count, pieces):
            total.update(found)
    print(f"{total.total()} words, {len(total)} different")


if __name__ == "__main__":
    main()
