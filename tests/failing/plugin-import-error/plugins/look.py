from _table import TABEL

from precast.passes import Pass


class Look(Pass):
    name, stage = TABEL["look"], "ttir"
