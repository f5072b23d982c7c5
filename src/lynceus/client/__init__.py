"""Studies on a server, with the words of local ones. Only the standard library is needed to talk to it."""

from lynceus.client.client import Client
from lynceus.client.remote import RemoteStudy

__all__ = ["Client", "RemoteStudy"]
