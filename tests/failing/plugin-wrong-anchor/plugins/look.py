from dataclasses import dataclass

from precast.passes import BuiltinPass, Pass


@dataclass(frozen=True)
class Look(Pass):
    name, stage, at = "look", "ttir", "befor(x)"
    limit: int = 1
    strict: bool = False

    def run(self, module, context):
        pass


other = BuiltinPass("common.cse", at="last")
