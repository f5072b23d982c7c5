"""Proxies in front of the server: which of them are believed when they say where a request came from."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.datastructures import Headers

from lynceus.errors import InputError

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_FORWARDED = re.compile(r'\s*([a-z]+)\s*=\s*("(?:[^"\\]|\\.)*"|[^;,"\s]+)\s*', re.IGNORECASE)


@dataclass(frozen=True)
class TrustedProxies:
    """Addresses and networks of proxies. Headers of any other sender are ignored, since every client can write them.

    >>> proxies = TrustedProxies.parse(["127.0.0.1", "10.0.0.0/8"])
    >>> headers = Headers({"x-forwarded-for": "6.6.6.6, 192.0.2.7, 10.0.0.2", "x-forwarded-proto": "https"})
    >>> proxies.sender("127.0.0.1", "http", headers), proxies.sender("192.0.2.9", "http", headers)
    (('192.0.2.7', 'https'), ('192.0.2.9', 'http'))
    """

    networks: tuple[_Network, ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> TrustedProxies:
        """Addresses such as `127.0.0.1` and networks such as `10.0.0.0/8`."""
        found = []
        for text in texts:
            try:
                found.append(ipaddress.ip_network(text.strip().strip("[]")))
            except ValueError:
                raise InputError(
                    f"--trusted-proxy: {text[:60]!r} is neither an address nor a network; write 127.0.0.1 or 10.0.0.0/8."
                ) from None
        return cls(tuple(found))

    def trusts(self, address: str) -> bool:
        """Whether an address belongs to a trusted proxy."""
        parsed = _address(address)
        return parsed is not None and any(parsed in network for network in self.networks)

    def sender(self, peer: str, scheme: str, headers: Headers) -> tuple[str, str]:
        """Address and scheme of the client, where `peer` is the machine at the other end of the connection.

        The address is the last one in the chain of proxies that is not itself a trusted proxy: what stands before it was written by
        the client. Where `X-Forwarded-For` and `Forwarded` disagree, one of them came from the client, and neither is believed.
        """
        if not self.networks or not self.trusts(peer):
            return peer, scheme
        plain = [hop.strip() for line in headers.getlist("x-forwarded-for") for hop in line.split(",") if hop.strip()]
        forwarded = [dict(pairs) for pairs in _elements(headers.getlist("forwarded"))]
        standard = [pairs["for"] for pairs in forwarded if "for" in pairs]
        found = {self._last_stranger(peer, hops) for hops in (plain, standard) if hops}
        schemes = {text.rpartition(",")[2].strip().lower() for text in headers.getlist("x-forwarded-proto")[-1:]}
        schemes |= {pairs["proto"].lower() for pairs in forwarded[-1:] if "proto" in pairs}
        address = found.pop() if len(found) == 1 else peer
        return address, schemes.pop() if len(schemes) == 1 and schemes <= {"http", "https"} else scheme

    def _last_stranger(self, peer: str, hops: list[str]) -> str:
        last = peer
        for hop in reversed(hops):
            parsed = _address(hop)
            if parsed is None:  # not an address, so whoever wrote it is the last one that is known
                return last
            last = str(parsed)
            if not self.trusts(last):
                return last
        return last


def network_of(address: str) -> str:
    """The address by which clients are counted: providers give a whole network of IPv6 addresses to one customer.

    >>> network_of("10.0.0.7"), network_of("2001:db8:1:2:3::4"), network_of("::ffff:10.0.0.7")
    ('10.0.0.7', '2001:db8:1:2::/64', '10.0.0.7')
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, 64), strict=False))


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """An address, perhaps in brackets and with a port or a zone."""
    bare = text.strip()
    if bare.startswith("["):
        bare = bare[1:].partition("]")[0]
    elif bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        parsed = ipaddress.ip_address(bare.partition("%")[0])
    except ValueError:
        return None
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return parsed if mapped is None else mapped


def _elements(lines: list[str]) -> Iterable[list[tuple[str, str]]]:
    """The elements of `Forwarded` headers (RFC 7239) as pairs."""
    for line in lines:
        pairs: list[tuple[str, str]] = []
        at = 0
        while match := _FORWARDED.match(line, at):
            pairs.append((match[1].lower(), match[2].strip('"')))
            at = match.end()
            if at < len(line) and line[at] == ",":
                yield pairs
                pairs = []
            if at >= len(line) or line[at] not in ";,":
                break
            at += 1
        yield pairs
