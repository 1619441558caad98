"""What a spec leaves to its source and the source's text does not say: computed configs, defaults that are no literals.

In: a spec that is read and a signature. Out: what has to be asked of an import, and the spec with the answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from precast.spec.checks import given_names
from precast.spec.imported import ImportedKernel
from precast.spec.matrix import check_configs, imported_configs
from precast.spec.model import ImportedValues, KernelSpec
from precast.spec.signature import Signature
from precast.spec.table import KernelTable
from precast.target import Target


@dataclass(frozen=True)
class Questions:
    """Constexprs whose default is asked for, and whether the configs of @triton.autotune are; on which targets."""

    defaults: frozenset[str]
    configs: bool
    targets: tuple[Target, ...]

    @property
    def any(self) -> bool:
        return bool(self.targets) and (self.configs or bool(self.defaults))

    def asks_for(self, constexpr: str) -> bool:
        """Whether an answer may hold the constexpr's value."""
        return bool(self.targets) and (self.configs or constexpr in self.defaults)


def find_questions(spec: KernelSpec, signature: Signature, targets: Sequence[Target]) -> Questions:
    """What only an import of the kernel's module can tell."""
    computed = {each.name for each in signature.parameters if each.constexpr and each.default_text}
    silent = {name for target in targets for name in computed - given_names(spec, target)}
    return Questions(frozenset(silent), spec.configs_of_source and signature.configs is None, tuple(targets))


def add_answers(
    table: KernelTable, spec: KernelSpec, questions: Questions, kernels: Mapping[str, ImportedKernel]
) -> KernelSpec:
    """The spec with what was asked of each target's import."""
    found = []
    for target, kernel in kernels.items():
        asked = [each for each in kernel.parameters if each.name in questions.defaults and each.has_default]
        values = tuple((each.name, each.default) for each in asked if not each.fault)
        faults = tuple((each.name, each.fault.rstrip(",")) for each in asked if each.fault)
        configs = imported_configs(table.fields["configs"], kernel) if questions.configs else ()
        check_configs(table, configs)
        found.append(ImportedValues(target, values, faults, configs))
    return replace(spec, imported=tuple(found))
