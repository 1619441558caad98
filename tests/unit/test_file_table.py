"""A table of files is the states that it was given, whatever was taken out of it and put in since."""

import random

from precast.digest import FileState
from precast.graph.snapshot import FileTable

FOLDERS = ("", "a/", "a/b/", "/elsewhere/", "c/")


def draw_states(chance: random.Random, count: int) -> dict[str, FileState]:
    paths = (f"{chance.choice(FOLDERS)}{chance.choice('klmnopq')}" for _ in range(count))
    numbers = iter(lambda: chance.randrange(1 << 40), None)
    return {path: FileState(*(next(numbers) for _ in range(4)), f"{chance.getrandbits(256):064x}") for path in paths}


def test_a_table_after_replacements_has_the_states_that_a_dict_has():
    chance = random.Random(1)
    for _ in range(200):
        known = draw_states(chance, chance.randrange(20))
        table = FileTable.of(known)
        for _ in range(3):
            gone = {path for path in known if chance.random() < 0.2} | {"not/there"}
            new = draw_states(chance, chance.randrange(4))
            table = table.replaced(gone, new)
            known = {**{path: state for path, state in known.items() if path not in gone}, **new}
            assert sorted(table.paths()) == sorted(known)
            assert table.select(known.keys()) == known
            some = {path for path in known if chance.random() < 0.5}
            assert table.select({*some, "a/none", "none"}) == {path: known[path] for path in some}
            again = FileTable.parse(table.folders, table.data)
            assert again.select(known.keys()) == known
