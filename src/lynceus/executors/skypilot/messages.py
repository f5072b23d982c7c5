"""What SkyPilot's errors mean: a sentence for the user, whether a retry may help, and what is known about the cluster."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lynceus.executors.skypilot.bridge import BRIDGE_ENDED, UNREADABLE, SkyError
from lynceus.trial.text import clean_line

_QUOTA = re.compile(r"quota|limit ?exceeded|insufficient.{0,20}limit|MaxSpotInstanceCount|VcpuLimit", re.IGNORECASE)
_NOT_OFFERED = re.compile(
    r"catalog does not contain|no (?:cloud|resource)s? .*satisf|invalid (?:instance|region|zone|infra)", re.IGNORECASE
)
_UNREADABLE = frozenset(
    {
        UNREADABLE,
        "JSONDecodeError",
        "UnicodeError",
        "ValidationError",
        "RequestException",
        "HTTPException",
        "HTTPError",
        "TimeoutError",
    }
)
"""Errors of a client that cannot make sense of what a server sends. Some of them are a ValueError, too."""
_DISK_FULL = re.compile(r"No space left on device|Disk quota exceeded|\bENOSPC\b")
_MAX_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What an error means."""

    sentence: str
    transient: bool
    """Whether the same request may succeed later."""
    blames_configuration: bool = False
    state_unknown: bool = False
    """The state of the run is unknown: it may still be running, and must not be settled."""
    cluster_gone: bool = False
    """The cluster no longer exists; if the error is transient, it may only seem so."""
    disk_full: bool = False
    """A disk is full. If that is the node's, because the run could not be copied to it, the same request fails again."""


def diagnose(error: SkyError, server: str) -> Diagnosis:
    """What an error of SkyPilot means. `server` is the address of the API server for messages, or empty."""
    text = shorten(error.text)
    kinds = set(error.kinds)
    if "ClusterDoesNotExist" in kinds:
        return Diagnosis(f"the cluster no longer exists: {text}", transient=False, cluster_gone=True)
    if "ClusterNotUpError" in kinds:
        return Diagnosis(f"the cluster does not answer: {text}", transient=True, cluster_gone=True)
    if kinds & {
        "ApiServerConnectionError",
        "ServerTemporarilyUnavailableError",
        "RequestInterruptedError",
        "ConnectionError",
    }:
        return Diagnosis(
            f"SkyPilot's API server{server} does not answer; start it ('sky api start') or correct api_server",
            transient=True,
            state_unknown=True,
        )
    if kinds & _UNREADABLE:
        sentence = f"SkyPilot's API server{server} gives answers that cannot be read ({error.kinds[0]}: {text})"
        return Diagnosis(sentence, transient=True, state_unknown=True)
    if _DISK_FULL.search(error.text):
        sentence = f"the disk of the node is full, or that of SkyPilot's API server{server}; free some space or request a larger disk"
        return Diagnosis(f"{sentence}: {text}", transient=True, disk_full=True)
    if "ResourcesUnavailableError" in kinds:
        return _unavailable(error.text, text)
    if "NoCloudAccessError" in kinds:
        return Diagnosis(f"SkyPilot has no access to any cloud; 'sky check' says why: {text}", transient=False)
    if kinds & {"ApiServerAuthenticationError", "PermissionDeniedError"}:
        return Diagnosis(
            f"SkyPilot's API server{server} denies access; log in with 'sky api login': {text}", transient=False
        )
    if kinds & {"ImportError", "APIVersionMismatchError", "APINotSupportedError"}:
        return Diagnosis(f"SkyPilot cannot be used: {text}", transient=False)
    if kinds & {"NotSupportedError", "ResourcesMismatchError", "InvalidSkyPilotConfigError", "ValueError"}:
        return Diagnosis(f"SkyPilot refuses the task: {text}", transient=False, blames_configuration=True)
    if BRIDGE_ENDED in kinds:
        return Diagnosis(text, transient=True, state_unknown=True)
    return Diagnosis(f"SkyPilot failed with {error.kinds[0]}: {text}", transient=True)


def _unavailable(full_text: str, text: str) -> Diagnosis:
    """SkyPilot has one error for all of these; only its text tells them apart."""
    if "not enabled" in full_text:
        return Diagnosis(f"SkyPilot has no access to that cloud: {text}", transient=False)
    if _NOT_OFFERED.search(full_text):
        return Diagnosis(f"no cloud offers such a machine: {text}", transient=False, blames_configuration=True)
    if _QUOTA.search(full_text):
        return Diagnosis(
            f"the cloud's quota does not allow the machine; request more or choose others: {text}", transient=True
        )
    return Diagnosis(f"no capacity for the machine at the moment: {text}", transient=True)


def shorten(text: str) -> str:
    """The beginning of a long message, on one line."""
    return clean_line(text, _MAX_LENGTH)
