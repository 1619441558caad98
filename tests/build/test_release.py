"""Releases: manifest and schema, placing, damage, keeping, signatures."""

import hashlib
import json
import os
import shutil
from dataclasses import replace

import jsonschema
import pytest
from release_fixture import make_parts, make_release

from precast.cli import main
from precast.codec import to_json
from precast.errors import BugError, ReleaseError
from precast.release.clean import list_releases, remove_releases
from precast.release.contents import compose_release, describe_images, join_release
from precast.release.folder import place_release, read_pointer
from precast.release.kept import read_part, write_part
from precast.release.manifest import MANIFEST, Manifest, manifest_schema, read_manifest
from precast.release.sign import make_keys, sign_release, verify_signature
from precast.release.verify import find_faults, verify_release


def files_of(release):
    return sorted(path for path in release.rglob("*") if path.is_file())


def flip(path, offset=-1):
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.unlink()
    path.write_bytes(data)


def test_manifest_follows_its_published_schema(tmp_path):
    data = json.loads((make_release(tmp_path) / MANIFEST).read_text())
    jsonschema.Draft202012Validator.check_schema(manifest_schema())
    jsonschema.validate(data, manifest_schema())
    data["units"][0]["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, manifest_schema())


def test_manifest_says_what_it_was_given(tmp_path):
    manifest = read_manifest(make_release(tmp_path))
    assert [unit.unit for unit in manifest.units] == ["copy:dtype=fp16@cuda:90", "copy:dtype=fp32@cuda:90"]
    assert manifest.units[0].passes[0].name == "rename"
    assert manifest.tools == (("cc", "gcc 12"), ("triton", "3.9.0"))
    assert manifest.glibc == "2.34"
    assert [file.path for file in manifest.files] == ["index.bin", "lib/libdemo.so", "targets/cuda-90/copy.pack"]


def test_version_is_project_version_and_digest_of_manifest(tmp_path):
    release = make_release(tmp_path)
    assert release.name == "1.2+" + read_manifest(release).digest[:12]
    home = release.parent
    assert os.readlink(home / "current") == release.name
    assert read_pointer(home).version == release.name
    assert json.loads((home / "release.json").read_text())["manifest"] == read_manifest(release).digest


def test_equal_parts_make_equal_bytes_anywhere(tmp_path):
    one, two = make_release(tmp_path / "a"), make_release(tmp_path / "b" / "deeper")
    assert one.name == two.name
    assert [path.read_bytes() for path in files_of(one)] == [path.read_bytes() for path in files_of(two)]


def test_unchanged_files_are_hard_links(tmp_path):
    contents, manifest = compose_release(make_parts(tmp_path, {"fp16": b"image one"}))
    one = place_release(tmp_path / "home", {**contents, "src/a.c": b"int a;"}, manifest)
    contents, manifest = compose_release(make_parts(tmp_path, {"fp16": b"image two"}))
    assert (one / "lib/libdemo.so").stat().st_nlink == 1  # the build's own file was replaced
    extended = replace(manifest, files=read_manifest(one).files)
    two = place_release(tmp_path / "home", {**contents, "index.bin": (one / "index.bin").read_bytes()}, extended)
    assert (two / "index.bin").stat().st_ino == (one / "index.bin").stat().st_ino
    assert (two / "lib/libdemo.so").stat().st_ino == (tmp_path / "build/libdemo.so").stat().st_ino


def test_manifest_of_joined_texts_is_canonical_json(tmp_path):
    """Put together of texts, it is what JSON makes of the whole."""
    for units in (["fp16", "fp32", "bf16"], ["fp32"]):
        _, manifest = compose_release(make_parts(tmp_path, {each: each.encode() for each in units}))
        body = json.loads(to_json(manifest))
        compact = json.dumps(body, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
        body["content"] = hashlib.sha256(compact.encode()).hexdigest()
        assert manifest.data.decode() == json.dumps(body, sort_keys=True, ensure_ascii=False, indent=1) + "\n"
        assert len(body["units"]) == len(units)


def test_what_a_release_says_of_images_is_kept_under_a_key(tmp_path):
    parts = make_parts(tmp_path, {"fp16": b"image one", "fp32": b"image two"})
    part = describe_images(parts.images[0], parts.interface)
    path = tmp_path / "kept"
    write_part(path, "key", part)
    kept = read_part(path, "key")
    files = [(parts.images[0].file, kept)]
    assert join_release(parts, files)[1].data == compose_release(parts)[1].data
    assert join_release(parts, files)[0]["index.bin"] == compose_release(parts)[0]["index.bin"]
    assert read_part(path, "other") is None and read_part(tmp_path / "none", "key") is None
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert read_part(path, "key") is None


def test_same_release_again_is_left_as_it_is(tmp_path):
    before = {path: path.stat().st_ino for path in files_of(make_release(tmp_path))}
    assert {path: path.stat().st_ino for path in files_of(make_release(tmp_path))} == before


@pytest.mark.parametrize("name", ["index.bin", "lib/libdemo.so", "targets/cuda-90/copy.pack", MANIFEST])
def test_damage_is_noticed_and_mended_by_placing_again(tmp_path, name):
    release = make_release(tmp_path)
    flip(release / name, 20)
    (fault,) = find_faults(release)
    assert str(release / name) in fault and "damaged" in fault
    assert find_faults(make_release(tmp_path)) == []


def test_every_bit_flip_in_the_manifest_is_noticed(tmp_path):
    path = make_release(tmp_path) / MANIFEST
    good = path.read_bytes()
    for offset in range(0, len(good), 7):
        path.write_bytes(good[:offset] + bytes([good[offset] ^ 1]) + good[offset + 1 :])
        assert find_faults(path.parent), f"offset {offset}"


def test_manifest_is_of_one_form_and_has_its_digest(tmp_path):
    """A changed value is not what the digest tells; a changed form says the same and is refused all the same."""
    path = make_release(tmp_path) / MANIFEST
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"demo"', b'"evil"'))
    assert find_faults(path.parent) == [f"{path} is damaged: its content does not match its digest"]
    path.write_bytes(whole.replace(b'"name": ', b'"name":  '))
    assert find_faults(path.parent) == [f"{path} is damaged: it is not in the form that Precast writes"]


def test_pack_that_holds_another_image_than_the_facts_tell_of_is_a_bug(tmp_path):
    parts = make_parts(tmp_path, {"fp16": b"image one"})
    (built,) = parts.images
    ((unit, result),) = built.units
    other = replace(built, units=((unit, replace(result, image_digest="0" * 64)),))
    with pytest.raises(BugError) as caught:
        compose_release(replace(parts, images=(other,)))
    assert str(caught.value) == f"{built.place} holds another image of {unit} than its facts tell of"


def test_absent_and_foreign_files_are_named(tmp_path):
    release = make_release(tmp_path)
    (release / "index.bin").unlink()
    (release / "lib" / "evil.so").write_bytes(b"")
    assert find_faults(release) == [
        f"{release}/index.bin is absent",
        f"{release}/lib/evil.so does not belong to the release",
    ]


def test_another_manifest_of_right_form_does_not_fit_the_folder(tmp_path):
    release = make_release(tmp_path)
    other = make_release(tmp_path, {"fp16": b"image one", "fp32": b"image 222"})
    shutil.copy(other / MANIFEST, release / MANIFEST)
    assert f"{release}/manifest.json is damaged: its digest does not match the release's version" in find_faults(
        release
    )


def test_manifest_of_another_schema_is_refused(tmp_path):
    path = make_release(tmp_path) / MANIFEST
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 9'))
    with pytest.raises(ReleaseError) as caught:
        read_manifest(path.parent)
    assert str(caught.value) == f"{path} has schema 9, this Precast reads schema 1"


def test_folder_without_manifest_is_no_release(tmp_path):
    with pytest.raises(ReleaseError) as caught:
        verify_release(tmp_path)
    assert str(caught.value) == f"{tmp_path} is no release: it has no manifest.json"


def test_keeping_newest_releases(tmp_path):
    images = [{"fp16": f"image {number}".encode()} for number in range(4)]
    releases = []
    for number, each in enumerate(images):
        releases.append(make_release(tmp_path, each))
        os.utime(releases[-1], (number, number))
    home = releases[0].parent
    assert list_releases(home) == releases[::-1]
    (home / ".draft-dead").mkdir()
    assert remove_releases(home, 2) == releases[1::-1]
    assert sorted(path.name for path in home.iterdir()) == sorted(
        ["current", "release.json", releases[2].name, releases[3].name]
    )
    make_release(tmp_path, images[2])  # an old release becomes the current one
    assert remove_releases(home, 1) == [releases[3]]
    assert remove_releases(home, 0) == [releases[2]]
    assert list(home.iterdir()) == []


def test_signature_binds_release_to_key(tmp_path):
    release = make_release(tmp_path)
    key, public = make_keys(tmp_path)
    with pytest.raises(ReleaseError, match=r"is not signed$"):
        verify_signature(release, public)
    sign_release(release, key)
    verify_signature(release, public)
    verify_release(release)
    (tmp_path / "other").mkdir()
    _, stranger = make_keys(tmp_path / "other")
    with pytest.raises(ReleaseError) as caught:
        verify_signature(release, stranger)
    assert str(caught.value) == f"{release} is not signed by {stranger}"
    flip(release / "manifest.json.sig", 3)
    with pytest.raises(ReleaseError):
        verify_signature(release, public)


def test_sign_command(tmp_path, capsys):
    release = make_release(tmp_path)
    assert main(["sign", "--new-keys", str(tmp_path / "keys")]) == 0
    private, public, raw = capsys.readouterr().out.splitlines()
    assert len(raw.removeprefix("for a launcher's open: ")) == 64
    assert main(["sign", str(release), "--key", private]) == 0
    assert capsys.readouterr().out == f"{release}/manifest.json.sig\n"
    assert main(["verify", str(release), "--key", public]) == 0
    said = capsys.readouterr().out
    compiled = release / "python/demo/__pycache__/__init__.cpython-311.pyc"
    compiled.parent.mkdir(parents=True)
    compiled.touch()
    assert main(["verify", str(release)]) == 0  # Python may have left it there
    capsys.readouterr()
    assert main(["verify", str(release), "--key", public]) == 1
    assert (
        f"{compiled} does not belong to the release, and Python would run it\nhint: remove it; "
        in capsys.readouterr().err
    )
    assert said.endswith(f"good, signed by {public}\n")
    assert main(["sign", "--new-keys", str(tmp_path / "keys")]) == 1
    assert "is there already" in capsys.readouterr().err
    assert main(["sign"]) == 1


@pytest.mark.parametrize(
    ("content", "told"),
    [(None, "cannot read the key {}: No such file or directory"), (b"junk", "{} holds no private key in PEM form")],
)
def test_bad_keys_are_told(tmp_path, content, told):
    release = make_release(tmp_path)
    path = tmp_path / "key"
    if content:
        path.write_bytes(content)
    with pytest.raises(ReleaseError) as caught:
        sign_release(release, path)
    assert str(caught.value).startswith(told.format(path))


def test_verify_command(tmp_path, capsys):
    release = make_release(tmp_path)
    assert main(["verify", str(release.parent / "current")]) == 0
    assert capsys.readouterr().out == f"demo {release.name}: 2 units, 3 files, good\n"
    flip(release / "index.bin")
    assert main(["verify", str(release)]) == 1
    assert "index.bin is damaged: its digest is not the manifest's" in capsys.readouterr().err


def test_manifest_round_trip_is_canonical(tmp_path):
    manifest = read_manifest(make_release(tmp_path))
    assert isinstance(manifest, Manifest)
    assert manifest.data == manifest.data.decode().encode()
    assert b"/tmp" not in manifest.data and str(tmp_path).encode() not in manifest.data
