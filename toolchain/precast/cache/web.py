"""A server of Bazel's remote cache protocol as the place of a cache: GET and PUT of `cas/<sha256>` and `ac/<key>`.

In: an address; credentials from it, from `PRECAST_CACHE_TOKEN` or from netrc. Any server that keeps what it is given
will do, as nginx with WebDAV. A request is tried twice where the connection or a gateway failed; nothing is waited for
without end. Bodies travel compressed where the server says that it can: by the encoding of its answers, and for what
is sent to it by `Accept-Encoding` in them (RFC 7694).
"""

from __future__ import annotations

import base64
import netrc
import os
import time
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
import zstandard
from urllib3.exceptions import (
    ConnectTimeoutError,
    HTTPError,
    LocationValueError,
    NameResolutionError,
    NewConnectionError,
    ProtocolError,
    ProxyError,
    ReadTimeoutError,
    SSLError,
)

from precast.cache.place import CacheFault
from precast.cache.settings import shown

TOKEN_VARIABLE = "PRECAST_CACHE_TOKEN"
CONNECT_SECONDS, ANSWER_SECONDS = 5.0, 10.0
BODY_SECONDS = 25.0  # for all of a body
_KEPT = range(200, 300)
_PASSING = {HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT}
_REFUSED = {HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN}
_FAILURES = {  # the first that fits: some are kinds of later ones
    ProxyError: "there is no connection to its proxy",
    LocationValueError: "its host is not known",
    NameResolutionError: "its host is not known",
    NewConnectionError: "no connection",
    ConnectTimeoutError: "it does not answer",
    ReadTimeoutError: "it does not answer",
    SSLError: "it speaks no TLS that we know",
    ProtocolError: "it breaks off",
}
_CHUNK = 1 << 16


class WebPlace:
    """A place behind `url`; at most `connections` are open at once, and used again."""

    def __init__(self, url: str, environment: Mapping[str, str], connections: int) -> None:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        self._base = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._headers = {"User-Agent": "precast", **_credentials(url, environment)}
        self._pool = _open_pool(self._base, connections)
        self._takes_zstd = False

    def get(self, kind: str, name: str, most: int) -> bytes | None:
        status, headers, data = self._request("GET", kind, name, most=most, extra={"Accept-Encoding": "zstd, identity"})
        if status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE):
            return None
        self._expect(status, HTTPStatus.OK)
        encoding = headers.get("Content-Encoding", "identity").lower()
        if encoding == "identity":
            return data
        if encoding != "zstd":
            raise CacheFault(f"it answers in the encoding `{encoding[:20]}`, which nobody asked for")
        return _decompress(data, most)

    def put(self, kind: str, name: str, data: bytes) -> None:
        extra = {"Content-Type": "application/octet-stream"}
        if self._takes_zstd:
            extra["Content-Encoding"], data = "zstd", zstandard.ZstdCompressor().compress(data)
        status, _, _ = self._request("PUT", kind, name, data=data, extra=extra)
        self._expect(status, *_KEPT)

    def _expect(self, status: int, *expected: int) -> None:
        if status not in expected:
            known = status in HTTPStatus.__members__.values()
            phrase = f" {HTTPStatus(status).phrase}" if known else ""
            raise CacheFault(f"it answers {status}{phrase}", refused=status in _REFUSED)

    def _request(
        self, method: str, kind: str, name: str, *, data: bytes = b"", most: int = _CHUNK, extra: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of the answer; a second try where the first was nobody's fault."""
        for last in (False, True):
            try:
                status, headers, body = self._try(method, f"{self._base}/{kind}/{name}", data, most, extra)
                if status not in _PASSING or last:
                    return status, headers, body
            except (HTTPError, OSError, ValueError) as error:
                if last or not isinstance(error, ProtocolError):
                    raise CacheFault(_reason(error)) from None
        raise AssertionError("the second try is the last")

    def _try(
        self, method: str, url: str, data: bytes, most: int, extra: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        answer = self._pool.request(
            method,
            url,
            body=data if method == "PUT" else None,
            headers={**self._headers, **extra},
            timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS),
            retries=False,
            redirect=False,
            preload_content=False,
            decode_content=False,
        )
        try:
            body = _read_body(answer, most)
        except BaseException:
            answer.close()
            raise
        if len(body) > most:
            answer.close()
        answer.release_conn()
        self._takes_zstd = self._takes_zstd or "zstd" in answer.headers.get("Accept-Encoding", "")
        return answer.status, answer.headers, body


def _read_body(answer: urllib3.BaseHTTPResponse, most: int) -> bytes:
    deadline = time.monotonic() + BODY_SECONDS
    parts, size = [], 0
    while chunk := answer.read1(_CHUNK):
        parts.append(chunk)
        size += len(chunk)
        if size > most:
            break
        if time.monotonic() > deadline:
            raise CacheFault("it is too slow")
    return b"".join(parts)


def _decompress(data: bytes, most: int) -> bytes:
    """The body that was meant; what is no such is left to the digest to refuse."""
    try:
        with zstandard.ZstdDecompressor().stream_reader(data) as stream:
            return bytes(stream.read(most + 1))
    except zstandard.ZstdError:
        return data


def _open_pool(base: str, connections: int) -> urllib3.PoolManager:
    parts = urlsplit(base)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all") or ""
    if not proxy or proxy_bypass(parts.netloc):
        return urllib3.PoolManager(maxsize=connections, block=True)
    if "://" not in proxy:
        proxy = f"http://{proxy}"
    try:
        user, _, password = (urllib3.util.parse_url(proxy).auth or "").partition(":")
        headers = {"Proxy-Authorization": _basic(unquote(user), unquote(password))} if user else {}
        return urllib3.ProxyManager(proxy, maxsize=connections, block=True, proxy_headers=headers)
    except (HTTPError, ValueError):
        raise CacheFault(f"its proxy, `{shown(proxy, whole=False)}`, is no address of one") from None


def _credentials(url: str, environment: Mapping[str, str]) -> dict[str, str]:
    """What says who we are: the address's own name and password, the environment's token, or an entry of netrc."""
    parts = urlsplit(url)
    if parts.username is not None:
        return {"Authorization": _basic(unquote(parts.username), unquote(parts.password or ""))}
    token = environment.get(TOKEN_VARIABLE, "").strip()
    if not (token.isascii() and token.isprintable()):
        raise CacheFault(f"{TOKEN_VARIABLE} holds what no header of a request may hold")
    if token:
        return {"Authorization": f"Bearer {token}"}
    file = environment.get("NETRC") or os.path.join(environment.get("HOME") or "~", ".netrc")
    try:
        found = netrc.netrc(os.path.expanduser(file)).authenticators(parts.hostname or "")
    except (OSError, UnicodeError, netrc.NetrcParseError):
        return {}
    return {"Authorization": _basic(found[0] or "", found[2] or "")} if found else {}


def _basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def _reason(error: Exception) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return "its certificate is not trusted"
    return next((text for kind, text in _FAILURES.items() if isinstance(error, kind)), "it fails")
