"""The small process beside every local run: it survives Lynceus, enforces the cap, keeps the output, writes down how it ended.

Only the standard library is imported here: a supervisor is forked for every trial from a process that has loaded nothing else.

What a run directory holds, in order of appearance:

    request.json     what to run and for how long; no environment, so no secret
    lock             held (flock) by the supervisor as long as it lives
    started.json     written before the job is started; a run that has it is never started again
    alive            its time of change is the supervisor's last sign of life
    params.json      the parameter values; the job finds it by LYNCEUS_PARAMS
    result.jsonl     what the job reports; the job finds it by LYNCEUS_RESULT
    stdout, stderr   the output, its beginning and its end
    cancel           somebody wants the run to end
    outcome.json     how it ended; whole or not there
"""
