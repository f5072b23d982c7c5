"""The runner of jobs with a section `serve`: it starts a server, waits until it is ready, drives load, reports what was measured, and ends
the server whatever happens.

A supervisor starts the runner in place of the job's own command, so it works the same on every executor, and timeouts, limits and
cancellation hold for the server and the load together. Only the standard library and `lynceus.executors.supervisor` are imported here: on
nodes the runner travels in the same single file as the supervisor, see `supervisor.bundle`.

`request.json` of such a run has the server's command as `argv` and a field `serve`:

    port        the port of a server that cannot be told one; null: the runner reserves one
    ready       path, status (null: any 2xx) and within_s of the HTTP check
    load        {argv, results}: a command that drives load; or the fields of `openai_load.Load`: requests of our own
    stop_after_s   how long the load lasts; null: until the command ends
    ramp        further loads on the same server: `higher` and `lower` ones, each with the `row` that it measures (`clients=16`), the
                `limits` that decide, and how many there may be. They are reported as `throughput@clients=16`; absent: one load

Server and load find the port as `${port}` in their arguments and as LYNCEUS_PORT (in scripts also `$port`) in their environment, and the
address `http://127.0.0.1:PORT` as `${url}`, LYNCEUS_URL and `$url`. What the load prints is the run's standard output, what the server
prints its standard error.
"""
