"""Ways in which the records of an index cannot be, by name: each changes an index of the release for tests."""

from __future__ import annotations

from collections.abc import Callable

from index_file import IndexFile

from precast.launch.formats import TYPE_CODES
from precast.launch.formats.records import SLOT_VARIED

POINTER, DESCRIPTOR = 0x80, 0x40


def unit_of(index: IndexFile, kernel: str, /, **wanted: int) -> tuple[int, dict]:
    number = index.find("units", kernel=index.find("kernels", name=kernel), **wanted)
    return number, index.get("units", number)


def set_unit(kernel: str, /, **changes: int) -> Callable[[IndexFile], None]:
    return lambda index: index.set("units", unit_of(index, kernel)[0], **changes)


def with_parameter(kernel: str, which: int, /, **changes: int | str) -> Callable[[IndexFile], None]:
    """Changes the first parameter of a kind of a kernel's first unit that has one; "slots" is the slots' count."""

    def change(index: IndexFile) -> None:
        number = index.find("kernels", name=kernel)
        record = index.get("kernels", number)
        for unit in range(record["units"], record["units"] + record["units_count"]):
            first, count = (index.get("units", unit)[key] for key in ("parameters", "parameters_count"))
            for place in range(first, first + count):
                if index.get("parameters", place)["kind"] == which:
                    slots = record["slots_count"]
                    index.set("parameters", place, **{key: slots if v == "slots" else v for key, v in changes.items()})
                    return
        raise LookupError(kernel)

    return change


def with_slot(name: str, has: int = 0, **changes: int) -> Callable[[IndexFile], None]:
    """Of the first slot of this name that has these flags."""

    def change(index: IndexFile) -> None:
        for number in range(index.count("slots")):
            slot = index.get("slots", number)
            if index.text(slot["name"]) == name and slot["flags"] & has == has:
                return index.set("slots", number, **changes)
        raise LookupError(name)

    return change


def with_hint(field: str, **changes: int | str) -> Callable[[IndexFile], None]:
    def change(index: IndexFile) -> None:
        for number in range(index.count("units")):
            unit = index.get("units", number)
            if unit[f"{field}_count"]:
                slots = index.get("kernels", unit["kernel"])["slots_count"]
                index.set("hints", unit[field], **{key: slots if v == "slots" else v for key, v in changes.items()})
                return

    return change


def kernels_share_units(index: IndexFile) -> None:
    for number in range(index.count("kernels")):
        index.set("kernels", number, units=0, units_count=index.count("units"))


def units_share_parameters(index: IndexFile) -> None:
    number, unit = unit_of(index, "steady")
    assert index.get("units", number + 1)["parameters_count"] == unit["parameters_count"]
    index.set("units", number + 1, parameters=unit["parameters"])


def units_take_the_nexts_parameters(index: IndexFile) -> None:
    number, unit = unit_of(index, "steady")
    following = index.get("units", number + 1)
    assert following["parameters_count"] == unit["parameters_count"]
    index.set("units", number, parameters=following["parameters"])


def around(field: str) -> Callable[[IndexFile], None]:
    """A unit's span begins so far out that its end, in 32 bits, lies within."""

    def change(index: IndexFile) -> None:
        units = range(index.count("units"))
        number = next(each for each in units if field == "slot_types" or index.get("units", each)[f"{field}_count"])
        index.set("units", number, **{field: 2**32 - 1}, **({} if field == "slot_types" else {f"{field}_count": 2}))

    return change


def kernel_lacks_a_unit(index: IndexFile) -> None:
    last = index.count("kernels") - 1
    index.set("kernels", last, units_count=index.get("kernels", last)["units_count"] - 1)


def kernels_swap_units(index: IndexFile) -> None:
    """Of two kernels next to each other, the second's first unit goes to the first."""
    first, second = index.get("kernels", 0), index.get("kernels", 1)
    index.set("kernels", 0, units_count=first["units_count"] + 1)
    index.set("kernels", 1, units=second["units"] + 1, units_count=second["units_count"] - 1)


def grid_reads_slot_beyond(index: IndexFile) -> None:
    _, unit = unit_of(index, "scale")
    for step in range(unit["grid_x"], unit["grid_x"] + unit["steps_x"]):
        if index.get("steps", step)["opcode"] == 1:
            index.set("steps", step, operand=index.get("kernels", unit["kernel"])["slots_count"])


def rule_of(index: IndexFile) -> dict[str, int | bytes]:
    """The first rule of a kernel with axes of words and of numbers."""
    return index.get("rules", index.get("kernels", index.find("kernels", name="nothing"))["rules"])


def rule_reads_slot_beyond(index: IndexFile) -> None:
    condition = index.get("conditions", rule_of(index)["conditions"])
    slots = index.get("kernels", index.find("kernels", name="nothing"))["slots_count"]
    for step in range(condition["steps"], condition["steps"] + condition["steps_count"]):
        if index.get("steps", step)["opcode"] == 1:
            index.set("steps", step, operand=slots)


def with_requirement(**changes: int | str) -> Callable[[IndexFile], None]:
    """Changes the first requirement of a unit; "strings" and "steps" are the count of that table."""

    def change(index: IndexFile) -> None:
        place = unit_of(index, "bounded")[1]["requires"]
        index.set(
            "requirements", place, **{key: index.count(v) if isinstance(v, str) else v for key, v in changes.items()}
        )

    return change


def with_step_of_requirement(which: int, **changes: int | str) -> Callable[[IndexFile], None]:
    """Changes a step of the first requirement of a unit; "slots" is the count of the kernel's."""

    def change(index: IndexFile) -> None:
        _, unit = unit_of(index, "bounded")
        slots = index.get("kernels", unit["kernel"])["slots_count"]
        place = index.get("requirements", unit["requires"])["steps"] + which
        index.set("steps", place, **{key: slots if v == "slots" else v for key, v in changes.items()})

    return change


def constant_of_no_value(index: IndexFile) -> None:
    place = index.find("axes", name="PINNED")
    index.set("axes", place, values_count=0)


def slot_has_an_axis_beyond(index: IndexFile) -> None:
    kernel = index.get("kernels", index.find("kernels", name="scale"))
    index.set("slots", kernel["slots"], dtype_axis=kernel["axes_count"])


def slot_has_an_axis_of_numbers(index: IndexFile) -> None:
    kernel = index.get("kernels", index.find("kernels", name="scale"))
    kinds = [index.get("axes", kernel["axes"] + place)["kind"] for place in range(kernel["axes_count"])]
    index.set("slots", kernel["slots"], dtype_axis=kinds.index(0))


def two_kernels_of_one_name(index: IndexFile) -> None:
    index.set("kernels", 1, name=index.get("kernels", 0)["name"])


def image_beyond_its_file(index: IndexFile) -> None:
    image = index.get("images", unit_of(index, "steady")[1]["image"])
    size = index.get("files", image["file"])["size"]
    index.set("images", unit_of(index, "steady")[1]["image"], offset=size - image["size"] + 1)


def image_that_begins_beyond(index: IndexFile) -> None:
    number = unit_of(index, "steady")[1]["image"]
    index.set("images", number, offset=index.get("files", index.get("images", number)["file"])["size"] + 1)


def file_and_image_of_nothing(index: IndexFile) -> None:
    image = unit_of(index, "count")[1]["image"]
    file = index.get("images", image)["file"]
    for number in range(index.count("images")):
        if index.get("images", number)["file"] == file:
            index.set("images", number, size=0)
    index.set("files", file, size=0)


def part_of_a_library(index: IndexFile) -> None:
    number = unit_of(index, "count")[1]["image"]
    index.set("images", number, size=index.get("images", number)["size"] - 1)


def library_by_another_digest(index: IndexFile) -> None:
    index.set("images", unit_of(index, "count")[1]["image"], digest=bytes(32))


def path(text: str) -> Callable[[IndexFile], None]:
    def change(index: IndexFile) -> None:
        place = index.get("files", index.count("files") - 1)["path"]
        index.set_text(place, text.ljust(len(index.text(place)), text[-1]) if text != "" else "")

    return change


def files_out_of_order(index: IndexFile) -> None:
    index.set("files", 0, path=index.get("files", 1)["path"])


def value_beyond_its_axis(index: IndexFile) -> None:
    number, unit = unit_of(index, "steady")
    index.set("units", number, axes=bytes([3]) + unit["axes"][1:])


def value_of_no_axis(index: IndexFile) -> None:
    number, unit = unit_of(index, "steady")
    index.set("units", number, axes=unit["axes"][:1] + b"\1" + unit["axes"][2:])


def argument_takes_the_nexts_slot(index: IndexFile) -> None:
    first = index.get("kernels", index.find("kernels", name="scale"))["arguments"]
    index.set("arguments", first, slots=2)


def argument_of_another_kernels_slot(index: IndexFile) -> None:
    first = index.get("kernels", index.find("kernels", name="scale"))["arguments"]
    index.set("arguments", first, first_slot=0)


def unit_of_another_name(index: IndexFile) -> None:
    index.set("units", unit_of(index, "scale")[0], text=unit_of(index, "steady")[1]["text"])


def two_scratches_of_a_kind(index: IndexFile) -> None:
    _, unit = unit_of(index, "features", backend=1)
    index.set("parameters", unit["parameters"] + unit["parameters_count"] - 1, kind=3)


def number_taken_for_a_tensor(index: IndexFile) -> None:
    """A descriptor's parameter reads its slot's address: the slot must be a descriptor's."""
    kernel = index.get("kernels", index.find("kernels", name="features"))
    for place in range(kernel["slots"], kernel["slots"] + kernel["slots_count"]):
        if index.get("slots", place)["type"] == DESCRIPTOR:
            index.set("slots", place, type=TYPE_CODES["i64"], rank=0)


def tensor_of_another_rank(index: IndexFile) -> None:
    index.set("descriptors", 0, rank=5)


def too_many_threads(index: IndexFile) -> None:
    index.set("units", unit_of(index, "steady")[0], warps=1025)


CASES = {
    "kernels share units": kernels_share_units,
    "units share parameters": units_share_parameters,
    "units take the next one's parameters": units_take_the_nexts_parameters,
    "hints around the end": around("hints"),
    "promises around the end": around("promises"),
    "requirements around the end": around("requires"),
    "types around the end": around("slot_types"),
    "a unit of no kernel": kernel_lacks_a_unit,
    "a unit in another kernel's span": kernels_swap_units,
    "a unit that names another kernel": set_unit("scale", kernel=0),
    "a unit with another kernel's text": unit_of_another_name,
    "two kernels of one name": two_kernels_of_one_name,
    "an argument from the slot beyond": with_parameter("scale", 0, slot="slots"),
    "a descriptor from the slot beyond": with_parameter("features", 1, slot="slots"),
    "a buffer from a slot": with_parameter("features", 2, slot=1),
    "scratch from a slot": with_parameter("features", 3, slot=1),
    "scratch from a slot beyond": with_parameter("features", 3, slot="slots"),
    "profile scratch from a slot beyond": with_parameter("features", 4, slot="slots"),
    "a parameter of no kind": with_parameter("scale", 0, kind=5),
    "two scratches of a kind": two_scratches_of_a_kind,
    "a number for a pointer": with_parameter("scale", 0, type=TYPE_CODES["i64"]),
    "a pointer to no type": with_parameter("scale", 0, type=POINTER | 20),
    "a buffer without a parameter": with_parameter("tally", 2, kind=3),
    "a parameter of the buffer beyond": with_parameter("features", 2, extra=1),
    "an argument that says more than whether it is written": with_parameter("scale", 0, extra=2),
    "a number taken for a tensor": number_taken_for_a_tensor,
    "a tensor of another rank": tensor_of_another_rank,
    "a hint on the slot beyond": with_hint("hints", slot="slots"),
    "a hint of no kind": with_hint("hints", kind=6),
    "a hint that is a value": with_hint("hints", kind=5),
    "a promise of no kind": with_hint("promises", kind=6),
    "a hint that is a promise": with_hint("hints", kind=2),
    "a hint by zero": with_hint("hints", kind=0, divisor=0),
    "a promise on the slot beyond": with_hint("promises", slot="slots"),
    "a promise that is a hint": with_hint("promises", kind=1),
    "a promise to be absent": with_hint("promises", kind=3),
    "a slot of flags beyond": with_slot("x", flags=4),
    "an absent argument that no slot tells of": with_slot("w", flags=0),
    "a number of another type that no slot tells of": with_slot("n", SLOT_VARIED, flags=0),
    "a grid from the slot beyond": grid_reads_slot_beyond,
    "a grid of too many steps": set_unit("scale", steps_x=257),
    "a grid of no steps": set_unit("scale", steps_x=0),
    "a requirement from the slot beyond": with_step_of_requirement(0, operand="slots"),
    "a requirement that compares nothing": with_step_of_requirement(2, opcode=2),
    "an operator beyond": with_step_of_requirement(2, opcode=16),
    "a requirement of no steps": with_requirement(steps_count=0),
    "a requirement of steps beyond": with_requirement(steps="steps"),
    "a requirement of too many steps": with_requirement(steps_count=257),
    "a requirement of a text beyond": with_requirement(text="strings"),
    "requirements beyond": lambda index: set_unit("bounded", requires=index.count("requirements"))(index),
    "more requirements than there can be": set_unit("bounded", requires_count=33),
    "a default of no kind": lambda index: index.set("arguments", 0, default_kind=5),
    "a constant of no value": constant_of_no_value,
    "constants that are axes": lambda index: index.set("kernels", 0, constants=0),
    "a rule from the slot beyond": rule_reads_slot_beyond,
    "a rule for the axis beyond": lambda index: index.set("assignments", rule_of(index)["assignments"], axis=3),
    "a rule's value beyond": lambda index: index.set("assignments", rule_of(index)["assignments"], value=3),
    "a rule's value of nothing": lambda index: index.set("assignments", rule_of(index)["assignments"], value=0),
    "a rule of a device beyond": lambda index: index.set("rules", 0, device=index.count("strings")),
    "a rule of a target beyond": lambda index: index.set("rules", 0, target=index.count("strings")),
    "a rule of a name beyond": lambda index: index.set("rules", 0, row=index.count("strings")),
    "an axis of no kind": lambda index: index.set("axes", 0, kind=5),
    "a slot of the axis beyond": slot_has_an_axis_beyond,
    "a slot of an axis of numbers": slot_has_an_axis_of_numbers,
    "a slot of no type": lambda index: index.set("slots", 0, type=0),
    "a slot of a type beyond": lambda index: index.set("slots", 0, type=20),
    "a slot of another argument": lambda index: index.set("slots", 0, argument=1),
    "an argument with two slots for one": argument_takes_the_nexts_slot,
    "an argument of another kernel's slot": argument_of_another_kernels_slot,
    "a value beyond its axis": value_beyond_its_axis,
    "a value of no axis": value_of_no_axis,
    "an image beyond its file": image_beyond_its_file,
    "an image that begins beyond its file": image_that_begins_beyond,
    "an image of the file beyond": lambda index: index.set("images", 0, file=index.count("files")),
    "the image beyond": lambda index: set_unit("scale", image=index.count("images"))(index),
    "an image of two gigabytes": lambda index: index.set("images", 0, size=2**31),
    "a file of terabytes": lambda index: index.set("files", 0, size=2**40),
    "a file of nothing": lambda index: index.set("files", 0, size=0),
    "a file and an image of nothing": file_and_image_of_nothing,
    "a part of a library": part_of_a_library,
    "a library by another digest": library_by_another_digest,
    "a path to above": path("../x"),
    "a path from the root": path("/x"),
    "a path through above": path("x/../../x"),
    "a path to the folder itself": path("./x"),
    "a path with a gap": path("x//x"),
    "a path to nothing": path(""),
    "files out of order": files_out_of_order,
    "no warps": set_unit("scale", warps=0),
    "more threads than there are": too_many_threads,
    "no blocks": set_unit("scale", ctas=0),
    "clusters of thousands": set_unit("scale", ctas=1025),
    "warps of nothing": set_unit("scale", warp_size=0),
    "an odd alignment": set_unit("scale", global_scratch_align=3),
    "no alignment": set_unit("scale", profile_scratch_align=0),
    "no backend": set_unit("scale", backend=0),
    "a backend beyond": set_unit("scale", backend=4),
    "flags of no meaning": set_unit("scale", flags=4),
    "an architecture of no kind": set_unit("scale", arch_kind=3),
    "types beyond their table": lambda index: set_unit("scale", slot_types=index.count("slot_types"))(index),
    "a text beyond": lambda index: set_unit("scale", description=index.count("strings"))(index),
    "a symbol beyond": lambda index: set_unit("scale", symbol=index.count("strings"))(index),
}
