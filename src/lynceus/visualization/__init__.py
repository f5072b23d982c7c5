"""Pictures of a study for notebooks, named as in Optuna where Optuna has them: `pip install 'lynceus-opt[plot]'`.

Each function takes a study (of `create_study` or `load_study`), draws one answer of `lynceus.analysis` with matplotlib, and returns the
axes. `axes=` draws into axes of your own.

| function | shows |
|---|---|
| `plot_optimization_history` | the best value so far over the money spent, and what each run cost |
| `plot_pareto_front` | cost against time of the finished runs |
| `plot_slice` | the objective of every run over each parameter |
| `plot_param_importances` | how much of the predicted variation each parameter explains |
| `plot_contour` | the best prediction over two parameters |
| `plot_candidates` | the open configurations that promise most per dollar |
| `plot_calibration` | predicted against measured times |
| `plot_input_size` | the predicted answer over the size of the input |
| `plot_job_runs` | the runs of a recurring job beside what was expected of them |
"""

from lynceus.visualization.facts import plot_job_runs, plot_optimization_history, plot_pareto_front, plot_slice
from lynceus.visualization.predictions import (
    plot_calibration,
    plot_candidates,
    plot_contour,
    plot_input_size,
    plot_param_importances,
)

__all__ = [
    "plot_calibration",
    "plot_candidates",
    "plot_contour",
    "plot_input_size",
    "plot_job_runs",
    "plot_optimization_history",
    "plot_param_importances",
    "plot_pareto_front",
    "plot_slice",
]
