"""Studies as documents: plain JSON values for pages, programs and notebooks, made by pure functions.

| document | function | made of |
|---|---|---|
| studies | `studies_view` | sums of the database |
| study | `study_view` | facts: head, open trials, settled trials as columns, perhaps only those since a position |
| insight | `insight_view` | models: the answer, the next run and why, importance of parameters |
| what-if | `whatif_view` | the answer under another deadline |
| trial | `trial_view` | one trial with plan, outcome, what the model was told, output |
| comparison | `compare_view` | two studies side by side |
"""

from lynceus.plain import Document, finite
from lynceus.view.compare import compare_view
from lynceus.view.insight import insight_view, whatif_view
from lynceus.view.studies import studies_view, study_line
from lynceus.view.study import study_view
from lynceus.view.subject import Subject, subject_of
from lynceus.view.trial import trial_output, trial_view

__all__ = [
    "Document",
    "Subject",
    "compare_view",
    "finite",
    "insight_view",
    "studies_view",
    "study_line",
    "study_view",
    "subject_of",
    "trial_output",
    "trial_view",
    "whatif_view",
]
