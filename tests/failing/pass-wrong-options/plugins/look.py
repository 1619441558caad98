from dataclasses import dataclass

from precast.passes import Pass, end


@dataclass(frozen=True)
class Look(Pass):
    name, stage, at = "look", "ttir", end()
    limit: int = 1
    strict: bool = False

    def run(self, module, context):
        pass
