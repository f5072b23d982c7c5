"""Render a fractal in tiles with worker processes. More cores help, up to a point."""

import argparse
import time
from multiprocessing import Pool

SIZE, DEPTH = 320, 120


def tile(corner: tuple[int, int, int]) -> int:
    """Number of points of one tile that stay bounded."""
    left, top, size = corner
    inside = 0
    for y in range(top, min(top + size, SIZE)):
        for x in range(left, min(left + size, SIZE)):
            c = complex(3.0 * x / SIZE - 2.2, 2.4 * y / SIZE - 1.2)
            z = 0j
            for _ in range(DEPTH):
                z = z * z + c
                if abs(z) > 2:
                    break
            else:
                inside += 1
    return inside


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--tile", type=int, required=True)
    options = parser.parse_args()
    corners = [(x, y, options.tile) for x in range(0, SIZE, options.tile) for y in range(0, SIZE, options.tile)]
    began = time.monotonic()
    with Pool(options.workers) as pool:
        inside = sum(pool.imap_unordered(tile, corners))
    print(f"{inside} points inside, pixels per second: {SIZE * SIZE / (time.monotonic() - began):.0f}")


if __name__ == "__main__":
    main()
