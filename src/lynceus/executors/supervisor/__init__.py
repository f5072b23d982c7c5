"""The small process beside every run: it outlives Lynceus, enforces the timeout, saves the output and records how the run ended.

Its parent is the `guard`, which enforces the timeout if the supervisor does not.

Only the standard library is imported here, and `lynceus.trial.text`, which needs nothing else: a supervisor is forked for every trial
from a process that has loaded nothing else, and on nodes it runs from a single file, see `bundle`.

The files of a run directory, in order of appearance:

    .lynceus-run     the run that the directory was made for: Lynceus made it, and may remove it
    request.json     what to run and for how long; no environment, so no secrets
    lock             locked (flock) by the supervisor and its guard as long as one of them lives
    started.json     written before the job is started; a run that has it is never started again
    alive            the supervisor's heartbeat: seconds that the job has run
    params.json      the parameter values; LYNCEUS_PARAMS tells the job where it is
    result.jsonl     what the job reports; LYNCEUS_RESULT tells the job where it is
    scratch          the run's own directory, see `scratch`; removed at the end, unless it is to be kept
    stdout, stderr   the output, its beginning and its end
    cancel           exists if the run is to be cancelled
    outcome.json     how the run ended, see `outcome_record`; written atomically
"""
