"""Train a support vector machine on a fraction of the digit images and report its accuracy on unseen digits."""

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

import lynceus

MOVES = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--penalty", type=float, required=True)
    parser.add_argument("--gamma", type=float, required=True)
    parser.add_argument("--share", type=float, required=True)
    options = parser.parse_args()

    images, digits = load_digits(return_X_y=True)
    images, unseen, digits, truth = train_test_split(images, digits, test_size=0.3, random_state=0, stratify=digits)
    # Copies shifted by a pixel give nine times the data, so that the full data costs clearly more than a sample.
    images = np.concatenate([np.roll(images.reshape(-1, 8, 8), move, axis=(1, 2)).reshape(-1, 64) for move in MOVES])
    digits = np.tile(digits, len(MOVES))
    kept = np.random.default_rng(0).permutation(len(images))[: int(options.share * len(images))]

    machine = SVC(C=options.penalty, kernel=options.kernel, gamma=options.gamma)
    lynceus.report(progress=0.1)
    machine.fit(images[kept], digits[kept])
    lynceus.report(progress=1.0, accuracy=float(machine.score(unseen, truth)))


if __name__ == "__main__":
    main()
