"""Wheel and tar of a release: same bytes each time, and a wheel that pip takes."""

import io
import json
import subprocess
import sys
import tarfile
import zipfile
from dataclasses import replace

import zstandard
from release_fixture import make_parts

from precast.cli import main
from precast.release.contents import compose_release
from precast.release.folder import place_release
from precast.release.manifest import MANIFEST


def make_release(folder):
    parts = make_parts(folder, {"fp16": b"image one", "fp32": b"image two"})
    package = folder / "package.py"
    package.write_text("name = 'demo'\n")
    parts = replace(parts, files={**parts.files, "python/demo/__init__.py": package, "src/demo.c": package})
    contents, manifest = compose_release(parts)
    return place_release(folder / "generated" / "demo", contents, manifest)


def test_packages_are_the_same_bytes_each_time(tmp_path, capsys):
    for name in ("a", "b"):
        release = make_release(tmp_path / name)
        assert main(["package", str(release), "--out", str(tmp_path / name / "dist")]) == 0
    one, two = (sorted((tmp_path / name / "dist").iterdir()) for name in ("a", "b"))
    assert [path.name for path in one] == [path.name for path in two]
    assert [path.read_bytes() for path in one] == [path.read_bytes() for path in two]
    assert [path.suffix for path in one] == [".whl", ".zst"]


def test_tar_holds_the_whole_release(tmp_path):
    release = make_release(tmp_path)
    assert main(["package", str(release), "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("*.tar.zst")
    with tarfile.open(fileobj=io.BytesIO(zstandard.ZstdDecompressor().decompress(path.read_bytes()))) as tar:
        tar.extractall(tmp_path / "there", filter="data")
    assert main(["verify", str(tmp_path / "there" / f"demo-{release.name}")]) == 0


def test_wheel_installs_where_there_is_nothing(tmp_path):
    release = make_release(tmp_path)
    assert main(["package", str(release), "--out", str(tmp_path)]) == 0
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name == f"demo-{release.name}-py3-none-manylinux_2_34_x86_64.whl"
    with zipfile.ZipFile(wheel) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
    assert "demo/_release/targets/cuda-90/copy.pack" in names and "demo/_release/src/demo.c" not in names
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target"]
    subprocess.run([*command, str(tmp_path / "site"), str(wheel)], check=True)
    inside = json.loads((tmp_path / "site/demo/_release" / MANIFEST).read_text())
    assert inside["project_version"] == "1.2"


def test_damaged_release_is_not_packaged(tmp_path, capsys):
    release = make_release(tmp_path)
    (release / "index.bin").unlink()
    assert main(["package", str(release), "--out", str(tmp_path / "dist")]) == 1
    assert "index.bin is absent" in capsys.readouterr().err
    assert not (tmp_path / "dist").exists()
