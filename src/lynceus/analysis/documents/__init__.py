"""The JSON documents of pages and reports, built from the typed answers of `lynceus.analysis`.

| document | function | fields that pages read |
|---|---|---|
| study | `study.study_document` | `head` (a `StudyOverview`), `open`, `trials` (columns), `space`; perhaps only trials since a position |
| insight | `insight.insight_document` | an `Explanation`, and `answer` (an `Answer` or null) |
| trial | `trial.trial_document` | an `OrderedRun` with `outcome`, `training_target` and `output` |
| comparison | `comparison.comparison_document` | `sides` (two studies) and `parameters` |
| studies | `lynceus.library.studies.studies_document` | `studies` (a list of `StudyOverview`) |

The page asks for other deadlines with the document of `lynceus whatif -o json` (`WhatIfs`).
"""
