"""What SkyPilot's errors mean: a clear sentence, whose fault it is, and whether waiting may help."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lynceus.executor.skypilot.bridge import BRIDGE_ENDED, SkyError

_QUOTA = re.compile(r"quota|limit ?exceeded|insufficient.{0,20}limit|MaxSpotInstanceCount|VcpuLimit", re.IGNORECASE)
_NEVER = re.compile(
    r"catalog does not contain|no (?:cloud|resource)s? .*satisf|invalid (?:instance|region|zone|infra)", re.IGNORECASE
)
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Meaning:
    """One trouble."""

    sentence: str
    passes: bool
    """Whether the same may work a little later."""
    blames_configuration: bool = False
    unknown: bool = False
    """Nobody can say how things stand: what runs goes on running, and must not be taken for over."""
    vanished: bool = False
    """The cluster is no more; if that may pass, it only looks so."""


def meaning(error: SkyError, server: str) -> Meaning:
    """What to make of an error of SkyPilot."""
    said = told_briefly(error.text)
    kinds = set(error.kinds)
    if "ClusterDoesNotExist" in kinds:
        return Meaning(f"the cluster is gone: {said}", passes=False, vanished=True)
    if "ClusterNotUpError" in kinds:
        return Meaning(f"the cluster does not answer: {said}", passes=True, vanished=True)
    if kinds & {
        "ApiServerConnectionError",
        "ServerTemporarilyUnavailableError",
        "RequestInterruptedError",
        "ConnectionError",
    }:
        return Meaning(
            f"SkyPilot's API server{server} does not answer; start it ('sky api start') or correct api_server",
            passes=True,
            unknown=True,
        )
    if "ResourcesUnavailableError" in kinds and "not enabled" in error.text:
        return Meaning(f"SkyPilot has no access to that cloud: {said}", passes=False)
    if "ResourcesUnavailableError" in kinds:
        if _NEVER.search(error.text):
            return Meaning(f"no cloud offers such a machine: {said}", passes=False, blames_configuration=True)
        if _QUOTA.search(error.text):
            return Meaning(
                f"the cloud's quota does not allow the machine; ask for more or choose others: {said}", passes=True
            )
        return Meaning(f"no capacity for the machine at the moment: {said}", passes=True)
    if "NoCloudAccessError" in kinds:
        return Meaning(f"SkyPilot has no access to any cloud; 'sky check' says why: {said}", passes=False)
    if kinds & {"ApiServerAuthenticationError", "PermissionDeniedError"}:
        return Meaning(f"SkyPilot's API server{server} refuses us; log in with 'sky api login': {said}", passes=False)
    if kinds & {"ImportError", "APIVersionMismatchError", "APINotSupportedError"}:
        return Meaning(f"SkyPilot cannot be used: {said}", passes=False)
    if kinds & {"NotSupportedError", "ResourcesMismatchError", "InvalidSkyPilotConfigError", "ValueError", "TypeError"}:
        return Meaning(f"SkyPilot refuses the task: {said}", passes=False, blames_configuration=True)
    if BRIDGE_ENDED in kinds:
        return Meaning(said, passes=True, unknown=True)
    return Meaning(f"SkyPilot failed with {error.kinds[0]}: {said}", passes=True)


def told_briefly(text: str) -> str:
    """The beginning of a long message, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
