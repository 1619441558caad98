"""The generated pass behind `precast.passes.ElementwiseOp`: calls become the declared ops, element by element.

In: ttir with `tt.extern_elementwise` ops that carry our symbol. Out: `arith` and `math` ops in their place, on tensors
where the call was on tensors.
"""

from __future__ import annotations

from typing import Any

from mlir import ir

from precast.errors import PassError
from precast.passes.elementwise import ElementwiseOp
from precast.passes.ir import walk
from precast.target import Target

DIALECTS = ("arith.", "math.")


def lower_elementwise(module: Any, op: ElementwiseOp, target: Target) -> None:
    """Replaces every call of `op` in `module`. `PassError` when its lowering is not what `ElementwiseOp` says."""
    for scalar in op.types:
        lowering: Any = None
        for call in list(walk(module)):
            if call.name != "tt.extern_elementwise" or call.attributes["symbol"].value != op.symbol(scalar):
                continue
            lowering = lowering or _parse_lowering(op, target, scalar, module.context)
            _inline(call, _body(lowering))


def _parse_lowering(op: ElementwiseOp, target: Target, scalar: str, context: Any) -> Any:
    """The checked module. Whoever uses its block must keep it: the block does not."""
    try:
        lowering = ir.Module.parse(op.lowering_for(target, scalar), context)
    except ir.MLIRError as error:
        raise PassError(f"the lowering of op `{op.name}` is not MLIR: {error}") from None
    functions = [each.operation for each in lowering.body.operations]
    if len(functions) != 1 or functions[0].name != "func.func" or len(functions[0].regions[0].blocks) != 1:
        raise PassError(f"the lowering of op `{op.name}` is not one func.func of one block")
    for inner in _body(lowering).operations:
        name = inner.operation.name
        if name != "func.return" and (not name.startswith(DIALECTS) or len(inner.operation.regions)):
            raise PassError(f"the lowering of op `{op.name}` holds `{name}`: only arith and math ops can be in it")
    return lowering


def _body(lowering: Any) -> Any:
    return lowering.body.operations[0].operation.regions[0].blocks[0]


def _inline(call: Any, body: Any) -> None:
    if len(body.arguments) != len(call.operands):
        raise PassError(f"`{call.attributes['symbol'].value}` is called with {len(call.operands)} arguments")
    values = dict(zip(body.arguments, call.operands, strict=True))
    with ir.InsertionPoint(call), call.location:
        for inner in body.operations:
            op = inner.operation
            if op.name == "func.return":
                call.results[0].replace_all_uses_with(values[op.operands[0]])
                call.erase()
                return
            _copy(op, call.results[0].type, values)


def _copy(op: Any, shape: Any, values: dict[Any, Any]) -> None:
    """One op of the lowering on the call's shape: each scalar type becomes a tensor of it where the call has one."""
    results = [_shaped(result.type, shape) for result in op.results]
    attributes = {name: op.attributes[name] for name in op.attributes}
    if op.name == "arith.constant" and isinstance(shape, ir.RankedTensorType):
        attributes["value"] = ir.DenseElementsAttr.get_splat(results[0], op.attributes["value"])
    made = ir.Operation.create(op.name, results, [values[operand] for operand in op.operands], attributes)
    values.update(zip(op.results, made.results, strict=True))


def _shaped(scalar: Any, shape: Any) -> Any:
    if not isinstance(shape, ir.RankedTensorType):
        return scalar
    return ir.RankedTensorType.get(shape.shape, scalar, shape.encoding)
