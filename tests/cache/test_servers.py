"""The cache on servers that people run: nginx with WebDAV, and object stores that speak as S3 and Google's do."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import fsspec
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "robust"))

from builds import Tree, build_clean, make_tree, read_release

import precast.cache.bucket as bucket_module
from precast.cache.entries import MOST_INLINE_BYTES, Entry
from precast.cache.place import CacheFault
from precast.cache.settings import CacheSettings
from precast.cache.shared import SharedCache, open_place
from precast.cache.upkeep import count_items, find_damaged, shrink

ROOT = Path(__file__).parents[2]
KEYS = [f"{number:064x}" for number in range(12)]
ENTRIES = [Entry(b"value", (os.urandom(MOST_INLINE_BYTES + 1), b"text" * 99)), Entry(b"v", (b"small",)), Entry(b"none")]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(url: str, process: subprocess.Popen) -> None:
    deadline = time.monotonic() + 300
    while True:
        try:
            urllib.request.urlopen(url, timeout=60).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.1)


@pytest.fixture(scope="session")
def nginx(tmp_path_factory) -> str:
    """The program: installed, or out of Debian's package, which is unpacked and not installed."""
    found = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if found:
        return found
    folder = tmp_path_factory.mktemp("nginx")
    try:
        subprocess.run(["apt-get", "download", "nginx"], cwd=folder, check=True, capture_output=True, timeout=120)
        (package,) = folder.glob("*.deb")
        subprocess.run(["dpkg", "-x", package, folder], check=True, capture_output=True)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        pytest.skip(f"it takes nginx: apt-get install nginx ({error})")
    return str(folder / "usr/sbin/nginx")


@pytest.fixture
def web(nginx, tmp_path, request):
    """nginx as docs/cache.md has it, with what a test adds: its address, and the folder that it keeps."""
    page = (ROOT / "docs/cache.md").read_text(encoding="utf-8")
    (server,) = re.findall(r"^```nginx\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    port, root, more = free_port(), tmp_path / "root", getattr(request, "param", "")
    root.mkdir(exist_ok=True)
    root.chmod(0o777)
    server = server.replace("8080", f"127.0.0.1:{port}").replace("/srv/precast", str(root))
    server = server.replace("10.0.0.0/8", "127.0.0.1")
    folders = more + "".join(
        f"{name}_temp_path {tmp_path}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (tmp_path / "nginx.conf").write_text(
        f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error.log;\n"
        f"{'user root;' if os.geteuid() == 0 else ''} events {{}} http {{ access_log off; {folders}\n{server} }}\n"
    )
    process = subprocess.Popen([nginx, "-p", tmp_path, "-c", "nginx.conf", "-e", f"{tmp_path}/error.log"])
    try:
        wait_for(f"http://127.0.0.1:{port}/", process)
        yield f"http://127.0.0.1:{port}/deep/er", root / "deep/er"
    finally:
        process.terminate()
        process.wait(300)


@pytest.fixture
def bucket_server(moto):
    """A server that speaks S3."""
    server = moto.ThreadedMotoServer(port=0, verbose=False)
    server.start()
    yield server
    server.stop()


@pytest.fixture
def bucket(bucket_server, monkeypatch):
    """A bucket of that server: its address."""
    host, port = bucket_server.get_host_and_port()
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
    }.items():
        monkeypatch.setenv(name, value)
    request = urllib.request.Request(f"http://{host}:{port}/shared", method="PUT")
    urllib.request.urlopen(request, timeout=300).close()
    return "s3://shared/some/where"


@pytest.fixture
def google_bucket(google_store, monkeypatch):
    """A bucket of a server that speaks as Google's store does: its address."""
    port = free_port()
    server = google_store.create_server("127.0.0.1", port, in_memory=True, default_bucket="shared")
    server.start()
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{port}")
    fsspec.filesystem("gs", skip_instance_cache=True).clear_instance_cache()
    yield "gs://shared/some/where"
    server.stop()


def exchange(url: str) -> None:
    """What one gives, another takes, whole or not, one after another or at once."""
    warnings: list[str] = []
    writer, reader = (SharedCache(CacheSettings(url), Path(), warnings.append) for _ in range(2))
    assert reader.get(KEYS[0]) is None and not warnings
    given = {key: ENTRIES[number % 3] for number, key in enumerate(KEYS)}
    for number, (key, entry) in enumerate(given.items()):
        writer.give(lambda key=key, entry=entry, whole=number % 2 == 0: (key, entry, whole))
    writer.finish()
    found = dict(reader.ask_all({key: lambda key=key: reader.get(key) for key in KEYS}))
    assert found == given and not warnings


@pytest.mark.all
def test_nginx_keeps_a_cache(web):
    url, folder = web
    exchange(url)
    place = open_place(str(folder), Path())
    assert count_items(place).entries == 12 and not list(find_damaged(place))
    for path in (folder / "cas").iterdir():
        path.write_bytes(b"poison")
    warnings: list[str] = []
    reader = SharedCache(CacheSettings(url), Path(), warnings.append)
    found = [reader.get(key) for key in KEYS]
    assert all(entry in (None, ENTRIES[number % 3]) for number, entry in enumerate(found))
    assert None in found and len(warnings) == 1 and "damaged or forged" in warnings[0]


@pytest.mark.all
def test_builds_share_nginx_and_go_on_when_it_is_killed(web, tmp_path):
    url, _ = web
    first, second, third = (make_tree(tmp_path / name / "p", 3, "sleep 0.02") for name in ("one", "two", "three"))
    assert len(first.build("--cache", url).compiled) == 3
    taken = second.build("--cache", url)
    assert (taken.code, taken.compiled, taken.summary["reused"]) == (0, [], 3), taken.err
    third.edit("kernels/k0.py", "value + 1", "value + 2")
    command = [sys.executable, "-m", "precast", "build", "--json", "-j1", "--cache", url]
    with subprocess.Popen(command, cwd=third.folder, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline()
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
        events = [json.loads(line) for line in process.communicate()[0].splitlines()]
    told = [event["message"] for event in events if event["event"] == "warning"]
    assert process.returncode == 0 and len(told) <= 1 and all("from here on" in each for each in told), told
    assert read_release(third) == build_clean(third, tmp_path / "clean")
    third.edit("kernels/k0.py", "value + 2", "value + 1")
    assert third.build("--cache", url).code == 0 and read_release(third) == read_release(first)


def build_beside(url: str, tree: Tree, folder: Path) -> list[str]:
    """The warnings of a build with a cache, of which all but what is quick to say goes on as without one."""
    build = tree.build("--cache", url)
    assert (build.code, len(build.compiled)) == (0, 3), build.err
    assert read_release(tree) == build_clean(tree, folder)
    return [event["message"] for event in build.events if event["event"] == "warning"]


@pytest.fixture
def small_disk(tmp_path):
    """The folder that nginx keeps, on a disk that is nearly full."""
    root = tmp_path / "root"
    root.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", root], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"it takes a root user who may mount a disk ({mounted.stderr.strip()})")
    yield root
    subprocess.run(["umount", "-l", root], check=True)


@pytest.mark.all
def test_nginx_that_is_full_costs_one_warning(small_disk, web, tmp_path):
    url, _ = web
    (small_disk / "filled").write_bytes(bytes(48 << 10))
    (told,) = build_beside(url, make_tree(tmp_path / "p", 3), tmp_path / "clean")
    assert told.startswith(f"the cache at {url} takes nothing from here on: "), told


@pytest.mark.all
def test_a_folder_that_is_full_costs_one_warning(small_disk, tmp_path):
    first, second = (make_tree(tmp_path / name / "p", 3) for name in ("one", "two"))
    cache = str(small_disk)
    (told,) = build_beside(cache, first, tmp_path / "clean")
    assert told.startswith(f"the cache at {cache} takes nothing from here on: no space left to write {cache}/"), told
    assert not list(small_disk.rglob(".*"))  # no draft
    build = second.build("--cache", cache, "--no-cache-write")
    assert (build.code, len(build.compiled) + build.summary["reused"]) == (0, 3)
    assert read_release(second) == read_release(first)
    assert not [event for event in build.events if event["event"] == "warning"]


@pytest.mark.all
@pytest.mark.parametrize("web", ["limit_rate 20;"], indirect=True)
def test_nginx_that_is_slow_costs_one_warning(web, tmp_path):
    url, folder = web
    first, second = (make_tree(tmp_path / name / "p", 3) for name in ("one", "two"))
    assert first.build("--cache", str(folder)).code == 0
    (told,) = build_beside(url, second, tmp_path / "clean")
    assert told.startswith(f"the cache at {url} is not used from here on: "), told


@pytest.mark.all
def test_builds_share_a_bucket_and_go_on_when_its_server_lies_or_is_gone(bucket, tmp_path):
    bucket = f"{bucket}/builds"
    first, second, third, fourth = (make_tree(tmp_path / name / "p", 3) for name in ("one", "two", "three", "four"))
    assert build_beside(bucket, first, tmp_path / "clean") == []
    taken = second.build("--cache", bucket)
    assert (taken.code, taken.compiled, taken.summary["reused"]) == (0, [], 3), taken.err
    assert read_release(second) == read_release(first)
    place = open_place(bucket, Path())
    for item in list(place.items()):
        place.put(item.kind, item.name, b"poison")
    (told,) = build_beside(bucket, third, tmp_path / "clean3")
    assert "damaged or forged" in told
    os.environ["AWS_ENDPOINT_URL"] = f"http://127.0.0.1:{free_port()}"  # as the fixture set it
    (told,) = build_beside(bucket, fourth, tmp_path / "clean4")
    assert told.startswith(f"the cache at {bucket} ") and "from here on" in told


@pytest.mark.soak
def test_a_bucket_whose_server_goes_during_a_build(bucket_server, bucket, tmp_path):
    tree = make_tree(tmp_path / "p", 6, "sleep 0.05")
    command = [sys.executable, "-m", "precast", "build", "--json", "-j1", "--cache", bucket]
    with subprocess.Popen(command, cwd=tree.folder, stdout=subprocess.PIPE, text=True) as process:
        events = [json.loads(process.stdout.readline()) for _ in range(6)]
        bucket_server.stop()
        events += [json.loads(line) for line in process.communicate()[0].splitlines()]
    told = [event["message"] for event in events if event["event"] == "warning"]
    assert process.returncode == 0 and len(told) <= 1 and all("from here on" in each for each in told), told
    assert read_release(tree) == build_clean(tree, tmp_path / "clean")


@pytest.mark.all
def test_a_bucket_keeps_a_cache(bucket):
    check_keeping(bucket)


@pytest.mark.all
def test_a_bucket_of_google_keeps_a_cache(google_bucket, capfd):
    check_keeping(google_bucket)
    absent = open_place("gs://no-such-bucket/x", Path())
    with pytest.raises(CacheFault, match=r"^there is no such bucket$"):
        absent.put("cas", "0" * 64, b"")
    assert capfd.readouterr().err == ""


def check_keeping(bucket: str) -> None:
    started = time.time()
    exchange(bucket)
    place = open_place(bucket, Path())
    before = count_items(place)
    assert before.entries == 12 and before.bytes > MOST_INLINE_BYTES and not list(find_damaged(place))
    assert all(started - 5 < item.used < time.time() + 5 for item in place.items())
    shrink(place, 0)
    assert count_items(place).bytes == 0


@pytest.mark.all
def test_a_store_that_nobody_serves_is_asked_for_a_while(google_bucket, monkeypatch, capfd):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setattr(bucket_module, "CALL_SECONDS", 2.0)
    fsspec.filesystem("gs", skip_instance_cache=True).clear_instance_cache()
    place = open_place("gs://shared/x", Path())
    with pytest.raises(CacheFault, match=r"^it has not answered for 2 s$"):
        place.get("cas", "0" * 64, 1)
    assert capfd.readouterr().err == ""


@pytest.mark.all
def test_a_bucket_that_is_not_there_costs_one_warning(bucket):
    warnings: list[str] = []
    cache = SharedCache(CacheSettings("s3://no-such-bucket/x"), Path(), warnings.append)
    cache.put(KEYS[0], ENTRIES[1], whole=True)
    cache.put(KEYS[1], ENTRIES[1], whole=True)
    assert cache.get(KEYS[0]) is None
    assert len(warnings) == 1 and warnings[0].startswith(
        "the cache at s3://no-such-bucket/x takes nothing from here on: "
    )
