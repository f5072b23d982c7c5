"""What SkyPilot runs on each node: the supervisor with the job. Afterwards it prints the result files into the job's log.

It needs only the standard library, not Lynceus. `python3 -I -S node.py KEY` is called in the folder of a run, as it was copied to the node.
A second call for the same run starts nothing: it waits for the end of the first one and prints the same.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from typing import Any

LINE, END, TROUBLE = "LYNCEUS-LINE", "LYNCEUS-END", "LYNCEUS-TROUBLE"
ENVIRONMENT, RUNNER = "environment", "runner.pyz"
RESULT_FILES = ("outcome.json", "stdout", "stderr", "result.jsonl", "supervisor.log")
_LINE_CHARS = 4000
_POLL_S = 0.5


def crypt(data: bytes, key: str) -> bytes:
    """Encrypt or decrypt data with a key that is used once and transferred separately."""
    keystream = bytearray()
    while len(keystream) < len(data):
        keystream += hashlib.sha256(f"{key}:{len(keystream)}".encode()).digest()
    return bytes(one ^ keystream[position] for position, one in enumerate(data))


def print_line(line: str) -> None:
    """Write one line to the log."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def result_lines(directory: str, rank: str) -> list[str]:
    """The result files as lines of a log."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in sorted(os.listdir(directory)):
            if name in RESULT_FILES:
                archive.add(os.path.join(directory, name), arcname=name)
    text = base64.b64encode(packed.getvalue()).decode()
    lines = [text[start : start + _LINE_CHARS] for start in range(0, len(text), _LINE_CHARS)]
    return [f"{LINE} {rank} {index} {len(lines)} {line}" for index, line in enumerate(lines)]


def run(folder: str, key: str, rank: str) -> str | None:
    """Run the job under its supervisor, or wait for another call that does; returns the directory with its outcome, or None."""
    directory = os.path.join(folder, f"rank-{rank}")
    os.makedirs(directory, exist_ok=True)
    for name in ("request.json", "params.json", "script"):
        source = os.path.join(folder, name)
        if os.path.exists(source) and not os.path.exists(os.path.join(directory, name)):
            shutil.copy(source, os.path.join(directory, f".{name}"))
            os.rename(os.path.join(directory, f".{name}"), os.path.join(directory, name))
    command = [sys.executable, "-I", "-S", os.path.join(folder, RUNNER)]
    supervisor = subprocess.Popen([*command, "run", directory, "-"], stdin=subprocess.PIPE)
    for which in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(which, lambda *_: supervisor.send_signal(signal.SIGTERM))
    assert supervisor.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        with open(os.path.join(folder, ENVIRONMENT), "rb") as file:
            supervisor.stdin.write(crypt(file.read(), key))
        supervisor.stdin.close()
    code = supervisor.wait()
    if code != 0:
        print_line(f"{TROUBLE} {code}")
        return None
    outcome = os.path.join(directory, "outcome.json")
    while not os.path.exists(outcome):  # another call runs it
        subprocess.run([*command, "state", directory], check=False, stdout=subprocess.DEVNULL)
        time.sleep(_POLL_S)
    return directory


def main(arguments: list[str]) -> int:
    """Run the job and print its results; fails if the job failed, so that SkyPilot shows it as failed."""
    rank = os.environ.get("SKYPILOT_NODE_RANK", "0")
    directory = run(os.path.dirname(os.path.abspath(__file__)), arguments[0], rank)
    if directory is None:
        return 1
    if rank == "0":
        os.truncate(os.path.join(os.path.dirname(directory), ENVIRONMENT), 0)
    for line in result_lines(directory, rank):
        print_line(line)
    print_line(f"{END} {rank}")
    with open(os.path.join(directory, "outcome.json"), encoding="utf-8") as file:
        outcome: Any = json.load(file)
    return 1 if outcome["end"] == "failed" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
