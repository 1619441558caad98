"""`precast init DIR`: a small project that builds and runs. In: a folder's name. Out: its first files."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path

import jinja2

from precast.errors import SpecError
from precast.store import write_file

HELP = "Make a small project: a kernel, its spec, a pass, an SConstruct."

TEMPLATES = Path(__file__).parent / "template"
# Where each template goes; packages do not nest data folders, so the templates lie side by side.
PLACES = {
    "pyproject.toml": "pyproject.toml",
    "SConstruct": "SConstruct",
    "gitignore": ".gitignore",
    "kernels.scale_add.py": "kernels/scale_add.py",
    "kernels.scale_add.toml": "kernels/scale_add.toml",
    "plugins.count_operations.py": "plugins/count_operations.py",
    "run.py": "run.py",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that is not there, or has none of the files")


def run(arguments: argparse.Namespace) -> int:
    for path in make_project(arguments.folder):
        print(path)
    folder, program = shlex.quote(str(arguments.folder)), shlex.quote(str(arguments.folder / "run.py"))
    print(f"\nnext: precast build --project {folder} && python {program}")
    return 0


def make_project(folder: Path) -> list[Path]:
    """Writes the files of a new project named like its folder; `SpecError` when one of them is there already."""
    name = re.sub(r"\W", "_", folder.resolve().name).lower()
    if not re.match(r"[a-z]", name):
        name = f"kernels_{name}"
    paths = {template: folder / place for template, place in PLACES.items()}
    for path in paths.values():
        if path.exists():
            raise SpecError(f"{path} is there already", hint="init writes over nothing: name a new folder")
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    for template, path in paths.items():
        write_file(path, environment.get_template(f"{template}.j2").render(name=name).encode())
    return list(paths.values())
