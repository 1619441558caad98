from precast.passes import Pass, before


class Look(Pass):
    name, stage, at = "look", "ttir", before("loop_unrol")

    def run(self, module, context):
        pass
