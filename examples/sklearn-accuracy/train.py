"""Train a random forest on digit images and report its accuracy on unseen digits."""

import argparse

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

import lynceus


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trees", type=int, required=True)
    parser.add_argument("--depth", type=int, required=True)
    parser.add_argument("--features", required=True)
    parser.add_argument("--share", type=float, required=True)
    parser.add_argument("--jobs", type=int, required=True)
    options = parser.parse_args()

    images, digits = load_digits(return_X_y=True)
    images, unseen, digits, truth = train_test_split(images, digits, test_size=0.3, random_state=0, stratify=digits)
    # Shifted copies make training slower and the forest more accurate, as in many real pipelines.
    shifted = [
        np.roll(images.reshape(-1, 8, 8), move, axis=(1, 2)).reshape(-1, 64)
        for move in ((0, 1), (0, -1), (1, 0), (-1, 0))
    ]
    images, digits = np.concatenate([images, *shifted]), np.tile(digits, 5)
    kept = np.random.default_rng(0).permutation(len(images))[: int(options.share * len(images))]

    forest = RandomForestClassifier(
        options.trees, max_depth=options.depth, max_features=options.features, n_jobs=options.jobs, random_state=0
    )
    lynceus.report(progress=0.1)
    forest.fit(images[kept], digits[kept])
    lynceus.report(progress=1.0, accuracy=float(forest.score(unseen, truth)))


if __name__ == "__main__":
    main()
