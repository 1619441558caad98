"""`precast completion SHELL`: a script that completes command lines. In: a shell's name. Out: the script."""

from __future__ import annotations

import argparse

HELP = "Print a script that completes precast's command lines in a shell."

SHELLS = ("bash", "zsh", "fish")
USE = 'as `eval "$(precast completion bash)"`, the same with zsh; `precast completion fish | source`'
FOLDERS = ("DIR", "FOLDER")
# shtab's script for zsh registers itself where it is given to `eval`, and would complete at once where it is sourced.
SOURCED = ("[[ $zsh_eval_context[-1] == eval ]]", "[[ $zsh_eval_context[-1] == (eval|file) ]]")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help=USE)


def run(arguments: argparse.Namespace) -> int:
    print(render_script(arguments.shell))
    return 0


def render_script(shell: str) -> str:
    import shtab

    from precast.cli import COMMANDS, build_parser

    parser = build_parser(COMMANDS)
    _mark_files(parser)
    script = str(shtab.complete(parser, shell=shell))
    return script.replace(*SOURCED) if shell == "zsh" else script


def _mark_files(parser: argparse.ArgumentParser) -> None:
    """Says which arguments are files and which are folders, by the type and the name that help shows."""
    import shtab

    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in set(action.choices.values()):
                _mark_files(command)
        elif action.metavar in FOLDERS:
            action.complete = shtab.DIRECTORY  # type: ignore[attr-defined]  # shtab's own way to say it
        elif action.metavar == "FILE":
            action.complete = shtab.FILE  # type: ignore[attr-defined]
