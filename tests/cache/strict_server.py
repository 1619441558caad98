"""A small server of Bazel's remote cache protocol that is strict with its clients, and can be made a bad one.

It refuses names that are no digests, blobs that are not what their name says, and messages that name blobs which are
not there. A client that is gone before it has sent all of a request has asked for nothing. What the server is told to
be (`behave`) holds for the requests that follow.
"""

from __future__ import annotations

import hashlib
import re
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import zstandard

from precast.cache.action_result import parse_action_result

NAME = re.compile(r"/(cas|ac)/([0-9a-f]{64})")
PROXIED = "http://cache.invalid"  # of which it is the proxy


@dataclass
class Behaviour:
    """What is wrong with the server. `status` by method, `lies` by kind: a bit of each body is another."""

    status: dict[str, int] = field(default_factory=dict)
    lies: tuple[str, ...] = ()
    forged: bytes = b""  # instead of any message
    breaks_off: bool = False
    wait: float = 0.0
    until: Callable[[], bool] = lambda: True  # what must hold before it answers
    drips: float = 0.0  # seconds between bytes of a body
    wants: str = ""  # the Authorization that a request must have
    proxy_wants: str = ""  # the Proxy-Authorization
    location: str = ""  # where it sends whoever asks, instead of answering
    page: bytes = b""  # what it shows to whoever asks, whatever for
    chunked: bool = False  # bodies come without a length
    longer: int = 0  # by how many bytes it says that bodies are longer than they are
    takes_zstd: bool = False
    encoding: str = ""  # said of bodies that have none
    room: int | None = None  # bytes that it keeps


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed is no fault of the server's."""
        if not isinstance(sys.exc_info()[1], (ConnectionError, ssl.SSLError)):
            super().handle_error(request, client_address)


class StrictServer:
    """The server with all that it was asked and has."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.held: dict[str, bytes] = {}  # by `cas/…` and `ac/…`
        self.requests: Counter[str] = Counter()  # by method and kind
        self.refusals: list[str] = []
        self.encodings: Counter[str] = Counter()
        self.most_at_once = self.answered = 0
        self.behaviour = Behaviour()
        self._lock = threading.Lock()
        self._at_once = 0
        self._server = _Listener(("127.0.0.1", 0), self._handler())
        if context:
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"http{'s' if context else ''}://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    @contextmanager
    def behaving(self, **wrong: object):
        self.behaviour = Behaviour(**wrong)
        try:
            yield self
        finally:
            self.behaviour = Behaviour()

    def names(self, kind: str) -> list[str]:
        return sorted(name for name in self.held if name.startswith(f"{kind}/"))

    def spoil(self, kind: str) -> None:
        """Damages all that it has of a kind."""
        for name in self.names(kind):
            self.held[name] = flipped(self.held[name])

    @contextmanager
    def _counted(self, method: str, kind: str):
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            self.requests[f"{method} {kind}"] += 1
        try:
            yield
        finally:
            with self._lock:
                self._at_once -= 1
                self.answered += 1

    def put(self, name: str, data: bytes) -> int:
        """Keeps a body, if it may be kept; the status of the answer."""
        kind, _, digest = name.partition("/")
        if kind == "cas" and hashlib.sha256(data).hexdigest() != digest:
            return self._refuse(f"{name} is another blob")
        if kind == "ac":
            try:
                files = parse_action_result(data).files
            except ValueError as error:
                return self._refuse(f"{name}: {error}")
            if not data or any(len(self.held.get(f"cas/{file.digest}", b"")) != file.size for file in files):
                return self._refuse(f"{name} names blobs that are not here")
        room = self.behaviour.room
        if room is not None and sum(map(len, self.held.values())) + len(data) > room:
            return 507
        self.held[name] = data
        return 200

    def _refuse(self, why: str) -> int:
        self.refusals.append(why)
        return 400

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self._serve("GET")

            def do_PUT(self) -> None:
                self._serve("PUT")

            def _serve(self, method: str) -> None:
                self.path = self.path.removeprefix(PROXIED)  # as a proxy is asked
                found = NAME.fullmatch(self.path)
                size = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(size)
                if len(body) < size:
                    self.close_connection = True
                    return
                with server._counted(method, found[1] if found else "other"):
                    self._answer(method, found, body)

            def _answer(self, method: str, found: re.Match[str] | None, body: bytes) -> None:
                behaviour = server.behaviour
                time.sleep(behaviour.wait)
                while not behaviour.until():
                    time.sleep(0.005)
                if behaviour.location:
                    self._send(behaviour.status[method])
                elif behaviour.page:
                    self._send(200, behaviour.page)
                elif found is None:
                    self._send(server._refuse(self.path))
                elif behaviour.proxy_wants and self.headers.get("Proxy-Authorization") != behaviour.proxy_wants:
                    self._send(407)
                elif behaviour.wants and self.headers.get("Authorization") != behaviour.wants:
                    self._send(401)
                elif method in behaviour.status:
                    self._send(behaviour.status[method])
                elif method == "PUT":
                    server.encodings[self.headers.get("Content-Encoding", "")] += 1
                    if self.headers.get("Content-Encoding") == "zstd":
                        body = zstandard.ZstdDecompressor().decompressobj().decompress(body)
                    self._send(server.put(self.path[1:], body))
                else:
                    data = server.held.get(self.path[1:])
                    if data is not None and behaviour.forged and found[1] == "ac":
                        data = behaviour.forged
                    elif data is not None and found[1] in behaviour.lies:
                        data = flipped(data)
                    self._send(404 if data is None else 200, data or b"")

            def _send(self, status: int, data: bytes = b"") -> None:
                behaviour = server.behaviour
                self.send_response(status)
                if behaviour.takes_zstd:
                    self.send_header("Accept-Encoding", "zstd")
                    if status == 200 and data and "zstd" in self.headers.get("Accept-Encoding", ""):
                        self.send_header("Content-Encoding", "zstd")
                        data = zstandard.ZstdCompressor().compress(data)
                elif behaviour.encoding:
                    self.send_header("Content-Encoding", behaviour.encoding)
                if 300 <= status < 400:
                    self.send_header("Location", behaviour.location or f"{server.url}/elsewhere")
                if behaviour.chunked:
                    self.send_header("Transfer-Encoding", "chunked")
                    data = b"".join(b"%x\r\n%s\r\n" % (len(each), each) for each in (data[:7], data[7:]) if each)
                    data += b"0\r\n\r\n"
                else:
                    self.send_header("Content-Length", str(len(data) + behaviour.longer * bool(data)))
                self.end_headers()
                self.close_connection |= bool(behaviour.longer)
                if behaviour.breaks_off and data:
                    self.wfile.write(data[: len(data) // 2])
                    self.close_connection = True
                    return
                for number in range(len(data)) if behaviour.drips else ():
                    self.wfile.write(data[number : number + 1])
                    self.wfile.flush()
                    time.sleep(behaviour.drips)
                if not behaviour.drips:
                    self.wfile.write(data)

        return Handler


def flipped(data: bytes) -> bytes:
    """The same but for one bit, in the middle."""
    place = len(data) // 2
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :] if data else b"?"
