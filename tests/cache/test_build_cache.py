"""Builds that share a cache: what one compiled, another takes; a cache that is wrong in any way costs one warning."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from strict_server import StrictServer

sys.path.insert(0, str(Path(__file__).parents[1] / "robust"))

from builds import Tree, build_clean, make_tree, read_release

from precast.cache.entries import Entry, pack_entry, parse_message
from precast.store import digest_bytes

TARGETS = ("cuda:90", "hip:gfx942")


@pytest.fixture(scope="module")
def server():
    made = StrictServer()
    yield made
    made.stop()


def warnings(build) -> list[str]:
    return [event["message"] for event in build.events if event["event"] == "warning"]


@pytest.fixture(scope="module")
def first_tree(server, tmp_path_factory):
    """The machine that filled the cache."""
    tree = make_tree(tmp_path_factory.mktemp("first") / "p", 3, "", TARGETS)
    build = tree.build("--cache", server.url)
    assert (build.code, len(build.compiled), warnings(build)) == (0, 6, [])
    assert not server.refusals
    return tree


@pytest.fixture(scope="module")
def first(first_tree):
    return read_release(first_tree)


@pytest.fixture
def machine(first_tree):
    """Makes folders with the same sources where no unit was ever compiled; their C is compiled already."""

    def make(folder: Path, order: str = "") -> Tree:
        tree = make_tree(folder, 3, order, TARGETS)
        shutil.rmtree(folder / "build")
        tree.prime(first_tree)
        return tree

    return make


def test_another_machine_takes_all_without_a_worker(server, first, machine, tmp_path):
    tree = machine(tmp_path / "p")
    before = server.requests.copy()
    build = tree.build("--cache", server.url)
    assert (build.code, build.compiled, build.summary["reused"], warnings(build)) == (0, [], 6, [])
    assert read_release(tree) == first
    asked = server.requests - before
    assert asked == {"GET ac": 6 + 1}  # units and the library; a worker would ask for stages
    assert tree.build("--cache", server.url).steps == [] and server.requests - before == asked


WATCHED = """
import json, sys
from precast.cli import main

seen = []

def watch(event, arguments):
    if event == "subprocess.Popen" and "precast.worker" in arguments[1]:
        seen.append("worker")
    elif event == "import" and arguments[0].partition(".")[0] in ("triton", "mlir", "llvmlite"):
        seen.append(arguments[0])

sys.addaudithook(watch)
code = main(["build", *sys.argv[1:]])
print(json.dumps([code, seen]))
"""


@pytest.mark.all
def test_what_is_taken_needs_neither_worker_nor_compiler(server, first, machine, tmp_path):
    def watched(tree: Tree) -> list:
        command = [sys.executable, "-c", WATCHED, "--project", tree.folder, "--cache", server.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    tree = machine(tmp_path / "p")
    assert watched(tree) == [0, []]
    tree.edit("kernels/k0.py", "value + 1", "value + 5")
    code, seen = watched(tree)
    assert code == 0 and "worker" in seen


def test_an_edit_that_decides_nothing_takes_the_stages(server, first, machine, tmp_path):
    tree = machine(tmp_path / "p")
    tree.edit("kernels/k0.py", "import triton\n", "# a remark\nimport triton\n")
    before = server.requests.copy()
    build = tree.build("--cache", server.url)
    assert (build.code, build.compiled, warnings(build)) == (0, [], [])
    assert read_release(tree) == first
    asked = server.requests - before
    assert asked == {"GET ac": 7 + 10, "GET cas": 10, "PUT ac": 2}  # five stages of each of two units


def test_what_a_module_read_decides_whether_its_unit_is_taken(server, machine, tmp_path):
    one, alike, other = (machine(tmp_path / name, "data table.json") for name in ("one", "alike", "other"))
    for tree, text in ((one, "[1]"), (alike, "[1]"), (other, "[2]")):
        tree.write("table.json", text)
    build = one.build("--cache", server.url)
    assert len(build.compiled) == 6 and "also uses table.json" in warnings(build)[0]
    build = alike.build("--cache", server.url)
    assert build.compiled == [] and read_release(alike) == read_release(one)
    assert len(other.build("--cache", server.url).compiled) == 6
    assert read_release(other) != read_release(one)
    alike.write("table.json", "[2]")  # the index knows what the units that were taken had read
    assert alike.build("--cache", server.url).compiled == [] and read_release(alike) == read_release(other)


@pytest.mark.all
def test_a_cache_that_lies_changes_no_byte(server, first, machine, tmp_path):
    tree = machine(tmp_path / "p")
    with server.behaving(lies=("ac", "cas")):
        build = tree.build("--cache", server.url)
    assert (build.code, len(build.compiled), read_release(tree)) == (0, 6, first)
    (warning,) = warnings(build)
    assert warning.startswith(f"the cache at {server.url} holds what is damaged or forged (ac/")


@pytest.mark.all
def test_a_cache_that_is_down_costs_one_warning(first, machine, tmp_path):
    tree = machine(tmp_path / "p")
    tree.edit("pyproject.toml", "[tool.precast.triton]", '[tool.precast.cache]\nurl = "http://127.0.0.1:9"\n'
              "[tool.precast.triton]")  # fmt: skip
    build = tree.build()
    assert (build.code, len(build.compiled), read_release(tree)) == (0, 6, first)
    assert warnings(build) == ["the cache at http://127.0.0.1:9 is not used from here on: no connection"]
    assert warnings(tree.build("--no-cache")) == []


@pytest.mark.all
def test_read_only_gives_nothing_and_plain_scons_takes(server, first, machine, tmp_path):
    tree = machine(tmp_path / "p")
    held = dict(server.held)
    tree.edit("pyproject.toml", "[tool.precast.triton]", f'[tool.precast.cache]\nurl = "{server.url}"\nwrite = false\n'
              "[tool.precast.triton]")  # fmt: skip
    tree.edit("kernels/k2.py", "value + 1", "value + 2")
    build = tree.scons()
    assert (build.code, len(build.compiled), build.summary["reused"]) == (0, 2, 4)
    assert server.held == held and read_release(tree) == build_clean(tree, tmp_path / "clean")


def precast(*words: str, folder: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "precast", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.all
def test_credentials_are_nowhere_but_in_requests(tmp_path):
    """Neither in what a build says or keeps, nor where kernels' modules run."""
    server, seen = StrictServer(), tmp_path / "seen"
    tree = make_tree(tmp_path / "p", 1, "run look.py")
    look = f"import os\nwith open({str(seen)!r}, 'a') as file:\n    file.write(repr(dict(os.environ)))\n"
    tree.write("kernels/look.py", look)
    secrets = {"PRECAST_CACHE_TOKEN": "secret", "http_proxy": "http://ann:secret@127.0.0.1:9", "NETRC": "/secret"}
    url = server.url.replace("http://", "http://ann:secret@")
    try:
        with server.behaving(wants="Basic YW5uOnNlY3JldA=="):
            builds = [tree.build("--cache", url, no_proxy="127.0.0.1", **secrets)]
        assert builds[0].code == 0 and server.held and not warnings(builds[0])
        with server.behaving(wants="another"):
            builds.append(make_tree(tmp_path / "q", 1).build("--cache", url, no_proxy="127.0.0.1", **secrets))
    finally:
        server.stop()
    (told,) = warnings(builds[1])
    assert told.startswith(f"the cache at {server.url} is not used from here on: it answers 401 Unauthorized; ")
    made = [path.read_bytes() for name in "pq" for path in (tmp_path / name).rglob("*") if path.is_file()]
    said = [text.encode() for build in builds for text in (build.out, build.err)]
    assert not any(b"secret" in text or b"c2VjcmV0" in text or b"YW5uO" in text for text in (*made, *said))
    assert seen.stat().st_size and "secret" not in seen.read_text()


@pytest.mark.all
def test_the_cache_is_looked_after(server, first, machine, tmp_path):
    tree, cache = machine(tmp_path / "p"), tmp_path / "cache"
    assert precast("cache", "stats", folder=tree.folder).stderr == (
        "error: the project has no shared cache\nhint: write `url` in [tool.precast.cache], or give --cache\n"
    )
    refused = precast("cache", "gc", "--cache", server.url, folder=tree.folder)
    assert refused.stderr == (
        f"error: the server at {server.url} does not say what it holds\n"
        "hint: run this where its files are: `--cache FOLDER`\n"
    )
    done = precast("cache", "warm", "--cache", server.url, folder=tree.folder)
    assert (done.returncode, done.stdout) == (0, "6 units taken, 0 given, 0 to be compiled\n"), done.stderr
    done = precast("cache", "warm", "--cache", str(cache), folder=tree.folder)
    assert done.stdout == "0 units taken, 6 given, 0 to be compiled\n", done.stderr
    done = precast("cache", "stats", "--cache", str(cache), folder=tree.folder)
    assert done.stdout.startswith("36 entries, 30 blobs, "), done.stderr
    (cache / "cas" / sorted(os.listdir(cache / "cas"))[0]).write_bytes(b"no")
    done = precast("cache", "verify", "--cache", str(cache), folder=tree.folder)
    assert done.returncode == 1 and done.stdout.endswith("1 damaged\n")
    assert precast("cache", "verify", "--cache", str(cache), folder=tree.folder).stdout == "0 damaged\n"
    assert precast("cache", "gc", "--cache", str(cache), folder=tree.folder).stderr.startswith(
        "error: gc needs a limit\n"
    )
    done = precast("cache", "gc", "--cache", str(cache), "--limit", "1kB", folder=tree.folder)
    assert done.stdout.startswith("removed 3"), done.stdout + done.stderr
    other = machine(tmp_path / "q")
    build = other.build("--cache", str(cache), "--check=100")
    assert (build.code, build.summary["checked"], warnings(build), read_release(other)) == (0, 6, [], first)


@pytest.mark.all
def test_what_was_forged_with_care_is_found_by_a_check(server, first, machine, tmp_path):
    key = server.names("ac")[0]
    for name in [each for each in server.held if each.startswith("ac/")]:  # as they came: first those that all ask for
        message = parse_message(name[3:], server.held[name])
        if len(message.entry.blobs) == 5 and b"@hip" in message.entry.value:
            key = name
            break
    image = b"an image of somebody else's"
    old, new = digest_bytes(message.entry.blobs[-1]).encode(), digest_bytes(image).encode()
    forged = Entry(message.entry.value.replace(old, new), (*message.entry.blobs[:-1], image))
    kept, server.held[key] = server.held[key], pack_entry(key[3:], forged, whole=True)[0]
    tree = machine(tmp_path / "p")
    try:
        build = tree.build("--cache", server.url, "--check=1", "--no-cache-write")
    finally:
        server.held[key] = kept
    assert build.code == 1
    (failed,) = (event for event in build.events if event["event"] == "failed")
    assert "stage hsaco comes out otherwise" in failed["message"]
    assert "hint: it was not made now but taken from the store or the cache" in failed["text"]


@pytest.mark.all
def test_an_interrupt_does_not_wait_for_a_server_that_hangs(machine, tmp_path):
    server = StrictServer()
    try:
        tree = machine(tmp_path / "p")
        with server.behaving(wait=600.0):
            command = [sys.executable, "-m", "precast", "build", "--project", tree.folder, "--cache", server.url]
            heeds = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # who runs the tests may not
            process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, preexec_fn=heeds)
            while not server.requests:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            assert "interrupted" in process.communicate(timeout=120)[1]
            assert process.returncode == 130
    finally:
        server.stop()


BAD = [
    {"wait": 60.0}, {"drips": 0.5}, {"breaks_off": True}, {"status": {"GET": 500}}, {"wants": "Bearer x"},
    {"status": {"PUT": 507}}, {"room": 20_000}, {"forged": b"\x2a\x05hello"}, {"forged": bytes(10)},
]  # fmt: skip
OTHER_BAD = [
    {"page": b"<html>Please log in</html>"}, {"page": b"{}", "encoding": "gzip"}, {"status": {"PUT": 413}},
    {"status": {"GET": 403, "PUT": 403}}, {"status": {"GET": 302, "PUT": 302}}, {"status": {"GET": 503}},
    {"chunked": True}, {"chunked": True, "breaks_off": True}, {"longer": 7}, {"longer": -7},
    {"takes_zstd": True, "lies": ("ac", "cas")}, {"takes_zstd": True, "breaks_off": True}, {"lies": ("cas",)},
]  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        *(pytest.param(wrong, marks=pytest.mark.all) for wrong in BAD),
        *(pytest.param(wrong, marks=pytest.mark.soak) for wrong in OTHER_BAD),
    ],
    ids=str,
)
def test_no_bad_server_fails_a_build(first, machine, tmp_path, wrong):
    server = StrictServer()
    try:
        assert machine(tmp_path / "a").build("--cache", server.url).code == 0
        tree = machine(tmp_path / "b")
        with server.behaving(**wrong):
            build = tree.build("--cache", server.url)
        assert (build.code, read_release(tree)) == (0, first), build.err
        assert len(warnings(build)) <= 1 and not server.refusals
    finally:
        server.stop()


@pytest.mark.all
def test_a_build_that_is_killed_leaves_the_cache_good(machine, tmp_path):
    server = StrictServer()
    try:
        tree = machine(tmp_path / "a", "sleep 0.1")
        with server.behaving(wait=0.02):
            command = [sys.executable, "-m", "precast", "build", "-j2", "--project", tree.folder, "--cache", server.url]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            for _ in range(3):
                process.stdout.readline()
            process.kill()
            process.communicate()
        build = tree.build("--cache", server.url)
        other = machine(tmp_path / "b", "sleep 0.1")
        taken = other.build("--cache", server.url)
        assert (build.code, taken.code, warnings(build) + warnings(taken)) == (0, 0, [])
        # What the killed build had recorded and not given is nowhere but there; all that the next one made, it gave.
        assert not set(taken.compiled) & set(build.steps)
        assert read_release(other) == read_release(tree) == build_clean(tree, tmp_path / "clean")
        assert not server.refusals
    finally:
        server.stop()


@pytest.mark.all
@pytest.mark.parametrize("kind", ["server", "folder"])
def test_eight_builds_share_one_cache(machine, tmp_path, kind):
    server = StrictServer()
    try:
        url = server.url if kind == "server" else str(tmp_path / "cache")
        trees = [machine(tmp_path / str(number), "sleep 0.05") for number in range(8)]
        command = [sys.executable, "-m", "precast", "build", "--json", "-j1", "--cache", url]
        running = [subprocess.Popen(command, cwd=tree.folder, stdout=subprocess.PIPE, text=True) for tree in trees]
        outs = [process.communicate(timeout=300)[0] for process in running]
        assert [process.returncode for process in running] == [0] * 8
        assert not any(json.loads(line)["event"] == "warning" for out in outs for line in out.splitlines())
        releases = [read_release(tree) for tree in trees]
        assert releases == [build_clean(trees[0], tmp_path / "clean")] * 8
        assert not server.refusals
    finally:
        server.stop()


@pytest.mark.soak
@pytest.mark.parametrize("limit", ["1kB", "60kB"])
def test_builds_go_on_while_their_cache_is_emptied(machine, tmp_path, limit):
    cache = tmp_path / "cache"
    trees = [machine(tmp_path / str(number), "sleep 0.05") for number in range(4)]
    command = [sys.executable, "-m", "precast", "build", "--json", "-j1", "--cache", str(cache)]
    running = [subprocess.Popen(command, cwd=tree.folder, stdout=subprocess.PIPE, text=True) for tree in trees]
    while any(process.poll() is None for process in running):
        for words in (["gc", "--limit", limit], ["verify"], ["stats"]):
            done = precast("cache", *words, "--cache", str(cache), folder=tmp_path)
            assert "Traceback" not in done.stderr and (done.returncode == 0 or "no such folder" in done.stderr), done
    outs = [process.communicate(timeout=300)[0] for process in running]
    assert [process.returncode for process in running] == [0] * 4
    assert not any(json.loads(line)["event"] == "warning" for out in outs for line in out.splitlines())
    assert [read_release(tree) for tree in trees] == [build_clean(trees[0], tmp_path / "clean")] * 4
