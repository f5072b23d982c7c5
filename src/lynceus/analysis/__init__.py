"""What a study teaches: every answer as one typed value, the same on the command line, the API, pages, reports and in notebooks.

| answer | value | made by |
|---|---|---|
| status of a study | `StudyOverview` | `overview.overview`; from sums of the database: `library.overview` |
| trials | `TrialRow` | `trial_rows.trial_rows` |
| best configuration | `Answer` | `answer.answer` |
| what it saves, over which future use | `Savings`, `Uses` | `savings.savings`, `savings.counted_uses` |
| next trial, candidates, importance, rank agreement | `Explanation` | `explanation.explain` |
| predicted against measured times | `Calibration` | `calibration.calibration` |
| other deadlines and prices | `WhatIf` | `whatif.whatif` |
| cost against time | `Point` | `pareto.cost_time_front` |
| plan of a search | `Forecast` | `forecast.forecast` |

`documents.json.to_json` turns each into JSON; field names are JSON names. `documents` adds the documents of pages.
"""
