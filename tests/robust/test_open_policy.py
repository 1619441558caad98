"""What can be demanded of a release, by `precast verify` and by the C runtime: the same grammars, the same answers."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from open_setup import IMAGES, PrecastPolicy, build_runtime, make_packaged, make_parts, open_with
from packaging.version import Version

from precast.cli import main
from precast.errors import PrecastError
from precast.release.contents import compose_release
from precast.release.folder import place_release
from precast.release.policy import Policy, verify_against
from precast.release.sign import make_keys, public_key_hex, sign_release
from precast.release.verify import verify_release

SIGNATURE = "manifest.json.sig"


class Keys(NamedTuple):
    secret: Path
    public: Path
    digits: str


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    return build_runtime()


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    secret, public = make_keys(tmp_path_factory.mktemp("keys"))
    return Keys(secret, public, public_key_hex(public))


@pytest.fixture
def release(tmp_path: Path, keys: Keys) -> Path:
    folder = make_packaged(tmp_path)
    sign_release(folder, keys.secret)
    return folder


def python_says(release: Path, policy: Policy) -> str:
    try:
        verify_against(release, policy)
    except PrecastError as error:
        return error.message.replace(str(release), "DIR")
    return ""


SIGNATURES = {
    "as it is written": (lambda text: text, True),
    "without an end": (lambda text: text[:-1], False),
    "with two ends": (lambda text: text + b"\n", False),
    "with another system's end": (lambda text: text[:-1] + b"\r\n", False),
    "after a space": (lambda text: b" " + text, False),
    "before a space": (lambda text: text[:-1] + b" ", False),
    "in large letters": (lambda text: text.upper(), False),
    "with more behind": (lambda text: text + b"00\n", False),
    "with a NUL": (lambda text: text[:-1] + b"\0", False),
    "of odd length": (lambda text: text[1:], False),
    "in pairs": (lambda text: b" ".join(text[i : i + 2] for i in range(0, 128, 2)) + b"\n", False),
    "with another letter": (lambda text: b"g" + text[1:], False),
    "in digits of another script": (lambda text: "٣".encode() + text[2:], False),
    "of nothing": (lambda text: b"", False),
}


@pytest.mark.parametrize("case", SIGNATURES)
def test_signature_files_have_one_grammar(release: Path, runtime: ctypes.CDLL, keys: Keys, case: str) -> None:
    change, good = SIGNATURES[case]
    path = release / SIGNATURE
    text = path.read_bytes()
    if case == "in large letters" and text == text.upper():
        text = b"A" + text[1:]
    path.write_bytes(change(text))
    of_c = open_with(runtime, release, PrecastPolicy(keys=bytes.fromhex(keys.digits), key_count=1))
    of_python = python_says(release, Policy(key=keys.public))
    assert (of_c == "", of_python == "") == (good, good), (of_c, of_python)


OTHER = "ab" * 32
RINGS = {
    "the key": ("{key}\n", ""),
    "the key without an end": ("{key}", ""),
    "the key and whose it is": ("{key} the machine that builds\n", ""),
    "the key after others": ("# who may sign\n\n" + OTHER + " somebody\n{key}\n", ""),
    "another key": (OTHER + "\n", "not signed"),
    "nothing": ("# nobody\n", "no key"),
    "the key in large letters": ("{KEY}\n", "64 hexadecimal digits"),
    "the key after a space": (" {key}\n", "64 hexadecimal digits"),
    "the key and more digits": ("{key}00\n", "64 hexadecimal digits"),
    "the key and a tab": ("{key}\tmine\n", "64 hexadecimal digits"),
    "the key and another system's end": ("{key}\r\n", "64 hexadecimal digits"),
    "a key too short": ("{key}\n" + OTHER[1:] + "\n", "64 hexadecimal digits"),
    "a line of spaces": ("{key}\n  \n", "64 hexadecimal digits"),
    "a NUL": ("{key}\0\n", "64 hexadecimal digits"),
}


@pytest.mark.parametrize("case", RINGS)
def test_key_rings_have_one_grammar(release: Path, runtime: ctypes.CDLL, keys: Keys, tmp_path: Path, case: str) -> None:
    text, told = RINGS[case]
    ring = tmp_path / "ring"
    ring.write_bytes(text.format(key=keys.digits, KEY=keys.digits.upper().replace("0", "A")).encode())
    of_c = open_with(runtime, release, PrecastPolicy(key_ring=str(ring).encode()))
    of_python = python_says(release, Policy(key=ring))
    if told:
        told = {"not signed": "signed by", "no key": " no key"}.get(told, told)
        assert told in of_c and told in of_python, (of_c, of_python)
    else:
        assert (of_c, of_python) == ("", "")


def test_what_is_demanded_is_refused_in_one_sentence(
    release: Path, runtime: ctypes.CDLL, keys: Keys, tmp_path: Path
) -> None:
    key, other = bytes.fromhex(keys.digits), bytes.fromhex(OTHER)
    demands = [
        (PrecastPolicy(), ""),
        (PrecastPolicy(keys=key, key_count=1, name=b"demo", minimum_version=b"1.2"), ""),
        (PrecastPolicy(keys=other + key, key_count=2), ""),
        (PrecastPolicy(keys=other, key_count=1), "DIR/manifest.json is not signed by the key that is required"),
        (PrecastPolicy(keys=other + other, key_count=2),
         "DIR/manifest.json is not signed by any of the keys that are allowed"),
        (PrecastPolicy(key_count=1), "a signature is required, and there is no key to check it with"),
        (PrecastPolicy(keys=key, key_count=0), "a signature is required, and there is no key to check it with"),
        (PrecastPolicy(key_ring=b"/nowhere/ring"), "cannot open /nowhere/ring: No such file or directory"),
        (PrecastPolicy(name=b"other"), "DIR is not a release of `other`, which is required"),
        (PrecastPolicy(minimum_version=b"1.2.1"), "DIR has version 1.2, and at least 1.2.1 is required"),
        (PrecastPolicy(minimum_version=b"1.x"), "`1.x` is no minimum version: numbers with dots between them"),
        (PrecastPolicy(minimum_version=b""), "`` is no minimum version: numbers with dots between them"),
    ]  # fmt: skip
    for policy, told in demands:
        assert open_with(runtime, release, policy) == told
    (release / SIGNATURE).unlink()
    assert open_with(runtime, release, PrecastPolicy(keys=key, key_count=1)) == (
        "a signature is required, and DIR is not signed"
    )
    manifest = release / "manifest.json"
    whole = manifest.read_bytes()
    manifest.write_bytes(whole.replace(b'"demo"', b'"evil"'))
    assert open_with(runtime, release, PrecastPolicy(name=b"evil")) == (
        "DIR/manifest.json does not match its own digest"
    )


def test_older_release_of_the_same_signer_is_refused_when_asked(
    runtime: ctypes.CDLL, keys: Keys, tmp_path: Path, capsys
) -> None:
    places = {}
    for version in ("1.9.0", "1.10.0"):
        parts = replace(make_parts(tmp_path / version, IMAGES), project_version=version)
        contents, manifest = compose_release(parts)
        places[version] = place_release(tmp_path / "home", contents, manifest)
        sign_release(places[version], keys.secret)
    words = ["--key", str(keys.public), "--name", "demo", "--at-least", "1.10"]
    assert main(["verify", str(places["1.10.0"]), *words]) == 0
    assert capsys.readouterr().out.endswith(f"good, signed by {keys.public}\n")
    assert main(["verify", str(places["1.9.0"]), *words]) == 1
    assert capsys.readouterr().err == (f"error: {places['1.9.0']} has version 1.9.0, and at least 1.10 is required\n")
    assert main(["verify", str(places["1.10.0"]), "--name", "other"]) == 1
    assert capsys.readouterr().err == (f"error: {places['1.10.0']} is a release of `demo`, and `other` is required\n")
    assert main(["verify", str(places["1.10.0"]), "--at-least", "new"]) == 1
    assert capsys.readouterr().err == "error: `new` is no version\nhint: write it as 1.4.2\n"
    policy = PrecastPolicy(keys=bytes.fromhex(keys.digits), key_count=1, minimum_version=b"1.10")
    assert [open_with(runtime, places[version], policy) for version in places] == [
        "DIR has version 1.9.0, and at least 1.10 is required", "",
    ]  # fmt: skip


NUMBERS = st.lists(st.sampled_from(["0", "1", "2", "9", "10", "99999999999999999999999"]), min_size=1, max_size=4)
RELEASES = st.tuples(st.sampled_from(["", "1!"]), NUMBERS).map(lambda pair: pair[0] + ".".join(pair[1]))
SUFFIXES = st.sampled_from(["", "a1", "b2", "rc1", ".dev3", ".post1", ".post1.dev2", "a1.post1", "rc1.dev1", "+local"])


@settings(max_examples=500, deadline=None)
@given(RELEASES, SUFFIXES, RELEASES)
def test_versions_have_one_order(runtime: ctypes.CDLL, release: str, suffix: str, minimum: str) -> None:
    version = str(Version(release + suffix))
    assert runtime.precast_is_minimum(minimum.encode()) == 1
    expected = Version(version) >= Version(minimum)
    assert bool(runtime.precast_is_at_least(version.encode(), minimum.encode())) == expected, (version, minimum)


@pytest.mark.parametrize("text", ["", ".", "1.", ".1", "1..2", "1a", "v1", "1!", "!1", "1 ", "-1", "1.2+x"])
def test_what_is_no_minimum(runtime: ctypes.CDLL, text: str) -> None:
    assert runtime.precast_is_minimum(text.encode()) == 0


@pytest.mark.parametrize("text", ["", "a", ".1", "main", "!1", "+1"])
def test_version_without_an_order_is_older_than_all(runtime: ctypes.CDLL, text: str) -> None:
    assert runtime.precast_is_at_least(text.encode(), b"0") == 0


def test_the_signature_is_that_of_the_manifest_that_was_verified(release: Path, keys: Keys, monkeypatch) -> None:
    """Not the one that lies there by then."""

    def verify(folder: Path, **words: bool) -> SimpleNamespace:
        found = verify_release(folder, **words)
        return SimpleNamespace(name=found.name, project_version=found.project_version, data=found.data + b" ")

    assert python_says(release, Policy(key=keys.public)) == ""
    monkeypatch.setattr("precast.release.policy.verify_release", verify)
    assert python_says(release, Policy(key=keys.public)) != ""


def test_a_name_that_is_empty_is_demanded_too(release: Path) -> None:
    assert python_says(release, Policy(name="")) == "DIR is a release of `demo`, and `` is required"
