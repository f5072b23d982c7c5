"""How imagined observations change a mixture of Gaussian processes, by rank-one steps and without refitting."""

from dataclasses import dataclass

import numpy as np

from lynceus.space.column import FloatArray, IntArray


@dataclass(frozen=True, eq=False, slots=True)
class Updates:
    """The updates of h members by e imagined observations in each of b states.

    With S = L Lᵀ the covariance of the imagined values and c the posterior covariance of a candidate with the imagined rows,
    r = L⁻¹ (y - mean) and B = L⁻¹ c give mean' = mean + rᵀ B and var' = var - Σ B².
    """

    places: IntArray
    """Index of each imagined row among the distinct ones, `[b, e]`."""
    inverse: FloatArray
    """L⁻¹, `[h, b, e, e]`."""
    residual: FloatArray
    """r, `[h, b, e]`."""
    weights: FloatArray
    """Probability of each member after the imagined values, `[h, b]`."""

    def only(self, some: slice) -> "Updates":
        """Some of the states."""
        return Updates(self.places[some], self.inverse[:, some], self.residual[:, some], self.weights[:, some])

    def moments(self, columns: FloatArray, mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """First and second moment `[b,c]` of the updated mixture.

        From the members' covariances `columns [h,u,c]` of the distinct imagined rows with c candidates, and their
        moments `mean`, `variance [h,c]` there. The part that no state changes is one matrix product.
        """
        first = self.weights.T @ mean
        second = self.weights.T @ (variance + np.square(mean))
        for member, weight in enumerate(self.weights[:, :, np.newaxis]):
            shift, lost = self._steps(member, columns[member])
            first += weight * shift
            lost -= np.square(shift)
            shift *= mean[member]
            shift *= 2.0
            shift -= lost
            shift *= weight
            second += shift
        return first, second

    def _steps(self, member: int, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """rᵀ B and Σ B² of one member, `[b, c]` each."""
        gathered = [columns[self.places[:, step]] for step in range(self.places.shape[1])]
        shift = np.zeros((len(self.places), columns.shape[1]))
        lost = np.zeros_like(shift)
        for step in range(len(gathered)):
            row = self.inverse[member, :, step, :, np.newaxis]
            whitened = gathered[0] * row[:, 0]
            for earlier in range(1, step + 1):
                whitened += gathered[earlier] * row[:, earlier]
            shift += whitened * self.residual[member, :, step, np.newaxis]
            lost += np.square(whitened, out=whitened)
        return shift, lost
