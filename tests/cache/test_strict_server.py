"""The tests' own server: what it takes for a request."""

import socket
import struct
import threading

import pytest
from strict_server import StrictServer

from precast.store import digest_bytes


@pytest.fixture
def server():
    made = StrictServer()
    yield made
    made.stop()


def speak(server: StrictServer, words: bytes) -> bytes:
    """All that the server says to a client that says no more than `words`."""
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=300) as client:
        client.sendall(words)
        client.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: client.recv(1 << 16), b""))


def put(data: bytes, size: int) -> bytes:
    return b"PUT /cas/%s HTTP/1.1\r\nContent-Length: %d\r\n\r\n%s" % (digest_bytes(data).encode(), size, data)


def test_half_a_request_is_none(server, capfd):
    assert speak(server, put(b"half of a blob", 28)) == b""
    assert (server.held, server.refusals, dict(server.requests)) == ({}, [], {})
    assert speak(server, put(b"a blob", 6)).startswith(b"HTTP/1.1 200 ")
    assert list(server.held.values()) == [b"a blob"]
    assert capfd.readouterr().err == ""


def test_a_client_that_is_gone_is_no_fault(server, capfd):
    name, others = digest_bytes(b"x"), set(threading.enumerate())
    server.held[f"cas/{name}"] = bytes(1 << 24)  # more than a connection holds
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=300) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # its end is a reset
        client.sendall(b"GET /cas/%s HTTP/1.1\r\n\r\n" % name.encode())
        assert client.recv(1)
    for thread in set(threading.enumerate()) - others:
        thread.join(60)
    assert capfd.readouterr().err == ""
