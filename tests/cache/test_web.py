"""What is between a cache's server and a build: proxies, credentials, certificates, and servers that are none."""

import datetime
import ipaddress
import os
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from strict_server import PROXIED, StrictServer

from precast.cache.entries import MOST_INLINE_BYTES, Entry
from precast.cache.settings import CacheSettings
from precast.cache.shared import SharedCache

KEY, OTHER = "1" * 64, "2" * 64
ENTRY, LARGE = Entry(b"value", (b"blob",)), Entry(b"value", (os.urandom(MOST_INLINE_BYTES + 1),))
PAGE = b"<!DOCTYPE html>\n<html><body>Please log in</body></html>\n"


@pytest.fixture(autouse=True)
def bare_environment(tmp_path, monkeypatch):
    """No proxy, netrc or token of who runs the tests."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name in ("NETRC", "PRECAST_CACHE_TOKEN"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))


@pytest.fixture
def server():
    made = StrictServer()
    yield made
    made.stop()


@pytest.fixture
def other():
    made = StrictServer()
    yield made
    made.stop()


class Cache(SharedCache):
    """A cache that keeps its warnings."""

    def __init__(self, url: str) -> None:
        self.warnings: list[str] = []
        super().__init__(CacheSettings(url), Path(), self.warnings.append)

    def exchange(self, entry: Entry = ENTRY) -> bool:
        """Whether what is given comes back."""
        self.put(KEY, entry, whole=False)
        return self.get(KEY) == entry

    def told(self) -> str:
        """The cause in the one warning that there is after several questions."""
        for key in (KEY, OTHER, KEY):
            assert self.get(key) is None
            self.put(key, ENTRY, whole=True)
        (warning,) = self.warnings
        _, _, cause = warning.partition(f"the cache at {self.address} is not used from here on: ")
        return cause or warning


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_nobody_is_followed_to_another_place_with_our_credentials(server, other, status, monkeypatch):
    monkeypatch.setenv("PRECAST_CACHE_TOKEN", "secret")
    cache = Cache(server.url)
    with server.behaving(status={"GET": status, "PUT": status}, location=f"{other.url}/ac/{KEY}"):
        assert cache.told().startswith(f"it answers {status} ")
    assert not other.requests


def test_a_place_that_sends_in_circles_is_asked_once(server):
    with server.behaving(status={"GET": 302}, location=f"{server.url}/ac/{KEY}"):
        assert Cache(server.url).told() == "it answers 302 Found"
    assert server.requests == {"GET ac": 1}


def test_a_page_for_people_is_no_entry(server):
    cache = Cache(server.url)
    cache.put(KEY, LARGE, whole=False)
    with server.behaving(page=PAGE):
        assert cache.get(KEY) is None and cache.get(OTHER) is None
    assert cache.warnings == [f"the cache at {server.url} holds what is damaged or forged (ac/{KEY}): not used"]
    assert cache.get(KEY) == LARGE


def test_bodies_without_a_length(server):
    with server.behaving(chunked=True):
        cache = Cache(server.url)
        assert cache.exchange(LARGE) and cache.exchange() and not cache.warnings
        assert cache.get(OTHER) is None and not cache.warnings


@pytest.mark.parametrize("wrong", [{"longer": 9}, {"chunked": True, "breaks_off": True}], ids=str)
def test_bodies_that_end_early(server, wrong):
    cache = Cache(server.url)
    cache.put(KEY, LARGE, whole=False)
    with server.behaving(**wrong):
        assert cache.told() == "it breaks off"


def test_bodies_that_are_longer_than_they_are_said_to_be(server):
    cache = Cache(server.url)
    cache.put(KEY, LARGE, whole=False)
    with server.behaving(longer=-3):
        assert cache.get(KEY) is None
    assert len(cache.warnings) == 1 and "damaged or forged" in cache.warnings[0]
    assert cache.get(KEY) == LARGE


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "zstd, gzip"])
def test_encodings_that_nobody_asked_for(server, encoding):
    cache = Cache(server.url)
    cache.put(KEY, LARGE, whole=False)
    with server.behaving(encoding=encoding):
        assert cache.told() == f"it answers in the encoding `{encoding}`, which nobody asked for"


def test_a_blob_far_larger_than_it_is_said_to_be_is_not_read(server):
    cache = Cache(server.url)
    cache.put(KEY, Entry(b"v", (b"small",)), whole=False)
    server.held[server.names("cas")[0]] = bytes(64 << 20)
    for zstd in (False, True):
        with server.behaving(takes_zstd=zstd):
            assert cache.get(KEY) is None
    assert len(cache.warnings) == 1 and "damaged or forged" in cache.warnings[0]


BASIC = "Basic YW5uOnBAc3M="


@pytest.mark.parametrize("form", ["{}", "http://{}", "http://ann:p%40ss@{}"])
@pytest.mark.parametrize("name", ["http_proxy", "ALL_PROXY"])
def test_a_proxy_in_between(server, monkeypatch, form, name):
    monkeypatch.setenv(name, form.format(server.url.removeprefix("http://")))
    monkeypatch.setenv("no_proxy", "elsewhere.invalid")
    cache = Cache(f"{PROXIED}/")
    with server.behaving(proxy_wants=BASIC if "ann" in form else ""):
        assert cache.exchange(LARGE) and not cache.warnings


def test_a_proxy_that_wants_to_know_who_asks(server, monkeypatch):
    monkeypatch.setenv("http_proxy", server.url.replace("http://", "http://ann:wrong@"))
    cache = Cache(PROXIED)
    with server.behaving(proxy_wants=BASIC):
        assert cache.told() == "it answers 407 Proxy Authentication Required"


@pytest.mark.parametrize("hosts", ["127.0.0.1", "127.0.0.1:{}", "*"])
def test_what_needs_no_proxy(server, monkeypatch, hosts):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", hosts.format(server.url.rpartition(":")[2]))
    assert Cache(server.url).exchange()


@pytest.mark.parametrize(
    ("proxy", "cause"),
    [
        ("http://127.0.0.1:9", "there is no connection to its proxy"),
        ("http://ann:secret@127.0.0.1:9", "there is no connection to its proxy"),
        ("socks5://ann:secret@host:1", "its proxy, `socks5://host:1`, is no address of one"),
        ("http://ann:secret@host:port", "its proxy, `http://host:port`, is no address of one"),
        ("http://[", "its proxy, `http://[`, is no address of one"),
    ],
)
def test_a_proxy_that_is_none(monkeypatch, proxy, cause):
    monkeypatch.setenv("http_proxy", proxy)
    assert Cache(PROXIED).told() == cause


@pytest.mark.parametrize("token", ["a\nb", "a\tb", "tök€n"])
def test_a_token_that_is_none(server, monkeypatch, token):
    monkeypatch.setenv("PRECAST_CACHE_TOKEN", token)
    assert Cache(server.url).told() == "PRECAST_CACHE_TOKEN holds what no header of a request may hold"
    assert not server.requests


@pytest.mark.parametrize(
    "netrc", [b"machine 127.0.0.1 login ann password \xff\xfe\n", b"machine", b"\0", None], ids=str
)
def test_a_netrc_that_cannot_be_read_says_nothing(server, tmp_path, netrc):
    place = tmp_path / ".netrc"
    place.mkdir() if netrc is None else place.write_bytes(netrc)
    assert Cache(server.url).exchange()


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".invalid", "cache.invalid"])
def test_a_host_that_is_none(host):
    assert Cache(f"http://{host}/").told() == "its host is not known"


def make_certificate(folder: Path) -> Path:
    """A certificate for 127.0.0.1 that nobody vouches for, and its key, in one file."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    start = datetime.datetime(2020, 1, 1)
    builder = x509.CertificateBuilder(name, name, key.public_key(), 1, start, start.replace(year=2120))
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = builder.add_extension(address, False).sign(key, hashes.SHA256())
    pem = serialization.Encoding.PEM
    private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "certificate.pem").write_bytes(private + made.public_bytes(pem))
    return folder / "certificate.pem"


def test_certificates(server, tmp_path, monkeypatch):
    certificate = make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    secure = StrictServer(context)
    try:
        assert Cache(secure.url).told() == "its certificate is not trusted"
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert Cache(secure.url).exchange(LARGE)
    finally:
        secure.stop()
    assert Cache(server.url.replace("http", "https")).told() == "it speaks no TLS that we know"
