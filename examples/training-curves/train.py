"""Train a small neural network on NumPy and report its accuracy after every epoch."""

from __future__ import annotations

import argparse
import os


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rate", type=float, required=True, help="the learning rate")
    parser.add_argument("--batch", type=int, required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = str(
        options.threads
    )  # before NumPy is imported
    import numpy as np

    import lynceus

    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((6000, 24), dtype=np.float32)
    teacher = rng.standard_normal((24, 6), dtype=np.float32)
    classes = (np.tanh(inputs) @ teacher).argmax(axis=1)  # what the network has to find out
    seen, unseen = slice(0, 5000), slice(5000, None)
    first = rng.standard_normal((24, options.width), dtype=np.float32) / 24**0.5
    second = np.zeros((options.width, 6), dtype=np.float32)
    for epoch in range(options.epochs):
        order = rng.permutation(5000)
        for start in range(0, 5000, options.batch):
            rows = order[start : start + options.batch]
            x, hidden = inputs[rows], np.maximum(inputs[rows] @ first, 0)
            scores = np.exp(hidden @ second - (hidden @ second).max(axis=1, keepdims=True))
            error = scores / scores.sum(axis=1, keepdims=True)
            error[np.arange(len(rows)), classes[seen][rows]] -= 1
            into_hidden = (error @ second.T) * (hidden > 0)
            second -= options.rate * hidden.T @ error / len(rows)
            first -= options.rate * x.T @ into_hidden / len(rows)
        guess = (np.maximum(inputs[unseen] @ first, 0) @ second).argmax(axis=1)
        accuracy = float((guess == classes[unseen]).mean())
        lynceus.report(progress=(epoch + 1) / options.epochs, accuracy=accuracy)


if __name__ == "__main__":
    main()
