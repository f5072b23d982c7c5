"""The child process of a supervisor, on its way to become the job."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from lynceus.executors.supervisor import files, process_tree, scratch
from lynceus.executors.supervisor.limits import Limits

_SOURCES = os.path.normpath(os.path.join(os.path.abspath(files.__file__), *[os.pardir] * 4))
"""Where this package was loaded from: a folder, or the single file of `bundle`."""
_SERVE = "import sys; sys.path.insert(0, sys.argv[1]); from lynceus.executors.serving.run import main; sys.exit(main(sys.argv[2]))"


def become_job(
    directory: str,
    request: dict[str, Any],
    environment: dict[str, str],
    limits: Limits,
    parent: int,
    pipes: tuple[int, int, int],
) -> None:
    """Its own session, the limits, the pipes (output, errors, why it cannot be started), then the command. Never returns."""
    out, err, write_error = pipes
    command, where = _command(directory, request), os.path.expanduser(request["cwd"])
    if (request.get("scratch") or {}).get("where") == "cwd":
        where = os.path.join(directory, scratch.NAME)
    try:
        os.setsid()
        process_tree.die_with_parent(parent)
        limits.enter()
        process_tree.prefer_for_oom_kill()
        os.chdir(where)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        for which in (signal.SIGPIPE, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(which, signal.SIG_DFL)
        os.execvpe(command[0], command, environment)
    except OSError as error:
        what = where if error.filename == where else command[0]
        os.write(write_error, f"{what!r} cannot be started: {error.strerror}".encode("utf-8", "replace"))
    except BaseException as error:
        os.write(write_error, f"{command[0]!r} cannot be started: {error}".encode("utf-8", "replace"))
    os._exit(127)


def _command(directory: str, request: dict[str, Any]) -> list[str]:
    """The job's own command; or the runner of `serving`, which reads the command of its server from the request."""
    if request.get("serve"):
        return [sys.executable, "-I", "-S", "-c", _SERVE, _SOURCES, directory]
    command = list(request["argv"])
    if request.get("script"):
        command[-1] = os.path.join(directory, command[-1])
    return command
