"""`precast coverage` of what is no release: where one is, or how there comes to be one."""

from precast.cli import main


def test_a_folder_that_is_no_release_is_told(tmp_path, capsys):
    spec = tmp_path / "recorded.toml"
    spec.write_text("")
    for hint in ("run `precast build`", f"{tmp_path}/current is one"):
        assert main(["coverage", str(tmp_path), str(spec)]) == 1
        assert capsys.readouterr().err == f"error: {tmp_path} is no release: it has no index.bin\nhint: {hint}\n"
        (tmp_path / "current").mkdir(exist_ok=True)
        (tmp_path / "current/index.bin").touch()
