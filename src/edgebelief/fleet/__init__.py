"""Many graphs: predictions and fits for each file of a folder, by any number of processes.

`run(job)` does a `Predict` or a `Fit` with processes of this machine, or with any executor (a
cluster's), and goes on where it ended, however it ended. `results(folder)` reads what there is.
"""

from .job import Fit, Job, OtherJob, Predict
from .results import Result, results
from .run import Failure, Outcome, run, shards
from .work import Withdrawn, work

__all__ = [
    "Failure",
    "Fit",
    "Job",
    "OtherJob",
    "Outcome",
    "Predict",
    "Result",
    "Withdrawn",
    "results",
    "run",
    "shards",
    "work",
]
