"""TTIR text to the engine's IR. In: MLIR text in its generic form. Out: `Function`s.

The generic form spells every type and attribute out, so nothing depends on the op; `syntax` gives attributes their
meaning.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from precast.engines.cpu import syntax
from precast.engines.cpu.ir import Block, Dense, Function, Op, Type, Value
from precast.engines.cpu.locations import Locations
from precast.errors import PassError

Item = TypeVar("Item")

_TOKEN = re.compile(
    r"""\s+|//[^\n]*
    |(?P<string>"(?:[^"\\]|\\.)*")
    |(?P<ssa>%[\w$.-]+(?:\#\d+)?)
    |(?P<caret>\^\w+)
    |(?P<symbol>@(?:[\w$.-]+|"(?:[^"\\]|\\.)*"))
    |(?P<hash>\#[\w$.-]+)
    |(?P<bang>![\w$.-]+)
    |(?P<hex>0[xX][0-9a-fA-F]+(?![\w]))
    |(?P<number>-?\d+(?:\.\d*(?:[eE][-+]?\d+)?)?)
    |(?P<word>[A-Za-z_][\w$.]*)
    |(?P<punctuation>->|::|[-{}()\[\]<>,:=*?+])
    """,
    re.VERBOSE,
)


def split_tokens(text: str) -> list[tuple[str, str, int]]:
    """Kind, text and offset of each token; the last has kind `end`."""
    tokens = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise PassError(f"TTIR text, line {text.count(chr(10), 0, position) + 1}: unexpected `{text[position]}`")
        if match.lastgroup:
            tokens.append((match.lastgroup, match.group(), position))
        position = match.end()
    tokens.append(("end", "", position))
    return tokens


class Reader:
    """Recursive descent over the tokens of one module."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = split_tokens(text)
        self.at = 0
        self.values: dict[str, Value] = {}
        self.blocks: dict[str, Block] = {}
        self.locations = Locations(text)
        self.functions: list[Function] = []

    # Tokens.

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0]

    @property
    def token(self) -> str:
        return self.tokens[self.at][1]

    def peek(self, ahead: int = 1) -> str:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)][1]

    def fail(self, wanted: str) -> PassError:
        line = self.text.count("\n", 0, self.tokens[self.at][2]) + 1
        return PassError(
            f"TTIR text, line {line}: expected {wanted}, found {f'`{self.token}`' if self.token else 'the end'}"
        )

    def take(self) -> str:
        if self.kind == "end":
            raise self.fail("more text")
        self.at += 1
        return self.tokens[self.at - 1][1]

    def accept(self, text: str) -> bool:
        if self.token == text and self.kind != "string":
            self.at += 1
            return True
        return False

    def expect(self, text: str) -> None:
        if not self.accept(text):
            raise self.fail(f"`{text}`")

    def listed(self, opening: str, closing: str, item: Callable[[], Item]) -> list[Item]:
        self.expect(opening)
        items: list[Item] = []
        while not self.accept(closing):
            items.append(item())
            if not self.accept(","):
                self.expect(closing)
                break
        return items

    # Types.

    def parse_type(self) -> Type:
        word = self.take()
        if word == "tensor":
            return self._parse_tensor()
        if word == "!tt.ptr":
            self.expect("<")
            pointee = self.parse_type()
            if self.accept(","):
                self.take()
            self.expect(">")
            return Type("ptr", (), pointee.element)
        if word.startswith("!"):
            self._skip_angles()
        return Type(word)

    def _skip_angles(self) -> None:
        depth = 0
        while self.token == "<" or depth:
            depth += {"<": 1, ">": -1}.get(self.take(), 0)

    def _parse_tensor(self) -> Type:
        """The tokens of `128x64xf32` run together: sizes are read from the text and the tokens set again."""
        self.expect("<")
        start = self.tokens[self.at][2]
        match = re.compile(r"(?:\d+x)*").match(self.text, start)
        assert match is not None
        sizes = tuple(int(size) for size in match.group().split("x")[:-1])
        self._resume(match.end())
        element = self.parse_type()
        if self.accept(","):  # a layout: none in TTIR, but nothing to stop for
            self.take()
            self._skip_angles()
        self.expect(">")
        return Type(element.element, sizes, element.pointee)

    def _resume(self, offset: int) -> None:
        """Goes on at `offset`, which may stand inside a token: what is left of it is split anew."""
        while self.tokens[self.at][2] < offset and self.tokens[self.at + 1][2] <= offset:
            self.at += 1
        _, text, start = self.tokens[self.at]
        if start < offset:
            rest = [(k, t, o + offset) for k, t, o in split_tokens(text[offset - start :])[:-1]]
            self.tokens[self.at : self.at + 1] = rest

    def parse_types(self) -> list[Type]:
        """`T`, `(T, T)` or `()`."""
        return self.listed("(", ")", self.parse_type) if self.token == "(" else [self.parse_type()]

    # Attributes.

    def parse_attributes(self) -> dict[str, Any]:
        return dict(self.listed("{", "}", self._parse_named))

    def _parse_named(self) -> tuple[str, Any]:
        name = self.take().strip('"')
        return name, self.parse_attribute() if self.accept("=") else True

    def parse_attribute(self) -> Any:
        if self.kind in ("number", "hex"):
            return self._parse_number()
        if self.kind == "string":
            return self.take()[1:-1]
        if self.token == "[":
            return tuple(self.listed("[", "]", self.parse_attribute))
        if self.token == "{":
            return self.parse_attributes()
        if self.kind == "symbol":
            return self.take()[1:].strip('"')
        if self.token in ("true", "false"):
            return self.take() == "true"
        if self.token == "dense":
            return self._parse_dense()
        if self.token == "array":
            return self._parse_array()
        if self.token == "loc":
            return self.parse_location()
        return self._parse_word()

    def _parse_word(self) -> Any:
        """A type, an enumerator (`#tt.red_op<fadd>`, `#arith.fastmath<none>`) or a bare word."""
        if self.token in ("tensor", "!tt.ptr") or self.kind == "bang":
            return self.parse_type()
        if self.token == "(":
            return self._parse_function_type()
        word = self.take()
        return self._take_angles() if self.token == "<" else word

    def _take_angles(self) -> str:
        """What stands between `<` and its `>`."""
        self.expect("<")
        inside, depth = "", 1
        while depth:
            token = self.take()
            depth += {"<": 1, ">": -1}.get(token, 0)
            inside += token
        return inside[:-1]

    def _parse_function_type(self) -> tuple[list[Type], list[Type]]:
        inputs = self.parse_types()
        self.expect("->")
        return inputs, self.parse_types()

    def _parse_number(self) -> int | float:
        text = self.take()
        type_ = self.parse_type() if self.accept(":") else None
        if type_ and type_.is_float:
            return syntax.float_value(text, type_.element)
        if re.fullmatch(r"-?\d+", text) or text[:2].lower() == "0x":
            return int(text, 0) if text[:2].lower() == "0x" else int(text)
        return float(text)

    def _parse_array(self) -> tuple[int | float, ...]:
        self.expect("array")
        self.expect("<")
        self.take()
        values = []
        if self.accept(":"):
            while True:
                values.append(syntax.plain_number(self.take()))
                if not self.accept(","):
                    break
        self.expect(">")
        return tuple(values)

    def _parse_dense(self) -> Dense:
        self.expect("dense")
        self.expect("<")
        raw: list[str] = []
        splat = self.token not in ("[", ">")
        depth = 0
        while depth or self.token != ">":
            text = self.take()
            depth += {"[": 1, "]": -1}.get(text, 0)
            if text not in ("[", "]", ","):
                raw.append(text)
        self.expect(">")
        self.expect(":")
        type_ = self.parse_type()
        return syntax.dense_value(raw, type_, splat)

    # Locations.

    def parse_location(self) -> str:
        """`loc(…)`, returned as its text; `Locations` resolves it."""
        self.expect("loc")
        start = self.tokens[self.at][2]
        depth = 0
        while True:
            depth += {"(": 1, ")": -1}.get(self.take(), 0)
            if depth == 0:
                return self.text[start + 1 : self.tokens[self.at - 1][2]]

    # Module, functions, blocks.

    def parse_module(self) -> list[Function]:
        while self.kind != "end":
            if self.kind == "hash":
                self.take()
                self.expect("=")
                self.parse_attribute()
            elif self.token == '"builtin.module"':
                self._parse_module()
            else:
                raise self.fail('`"builtin.module"`: text in generic form')
        return self.functions

    def _parse_module(self) -> None:
        self.take()
        self.listed("(", ")", self.take)
        if self.accept("<"):
            self.parse_attributes()
            self.expect(">")
        self.expect("(")
        self._parse_functions()
        self.expect(")")
        if self.token == "{":
            self.parse_attributes()
        self.expect(":")
        self._parse_function_type()
        self._take_location()

    def _parse_functions(self) -> None:
        self.expect("{")
        if self.kind == "caret":
            self.take()
            self.expect(":")
        while not self.accept("}"):
            self._parse_function()
        self._take_location()

    def _take_location(self) -> str:
        return self.parse_location() if self.token == "loc" else ""

    def _parse_function(self) -> None:
        self.values = {}
        operation = self.parse_operation()
        if operation.name != "tt.func":
            raise PassError(f"a TTIR module has functions alone; this one has `{operation.name}`", operation.where)
        public = operation.attributes.get("sym_visibility", "public") == "public"
        self.functions.append(Function(operation, str(operation.attributes["sym_name"]), public))

    def declare(self, name: str, type_: Type) -> Value:
        value = Value(type_)
        self.values[name] = value
        return value

    def parse_region(self, owner: Op) -> list[Block]:
        """`{ … }`; the entry block need not have a label, and an empty region has no block."""
        self.expect("{")
        outer, self.blocks = self.blocks, {}
        blocks: list[Block] = []
        if self.kind != "caret" and self.token != "}":
            blocks.append(self._start_block(Block(), owner, []))
            self._parse_operations(blocks[-1])
        while self.kind == "caret":
            block = self._block(self.take())
            labelled = self.listed("(", ")", self._parse_block_argument) if self.token == "(" else []
            self.expect(":")
            blocks.append(self._start_block(block, owner, labelled))
            self._parse_operations(block)
        self.expect("}")
        self.blocks = outer
        return blocks

    def _block(self, label: str) -> Block:
        return self.blocks.setdefault(label, Block())

    def _start_block(self, block: Block, owner: Op, arguments: list[Value]) -> Block:
        block.parent = owner
        block.arguments = arguments
        for index, argument in enumerate(arguments):
            argument.block, argument.index = block, index
        return block

    def _parse_block_argument(self) -> Value:
        name = self.take()
        self.expect(":")
        value = self.declare(name, self.parse_type())
        self._take_location()
        return value

    def _parse_operations(self, block: Block) -> None:
        while self.token != "}" and self.kind != "caret":
            operation = self.parse_operation()
            operation.block = block
            block.operations.append(operation)

    # Operations.

    def parse_operation(self) -> Op:
        names = self._parse_result_names()
        if self.kind != "string":
            raise self.fail("an op in generic form")
        operation = Op(self.take().strip('"'))
        types = self._parse_rest(operation)
        count = sum(width for _, width in names)
        if count not in (0, len(types)):
            raise self.fail(f"{count} result types of `{operation.name}`")
        operation.results = [Value(each, operation, index) for index, each in enumerate(types)]
        self._bind_results(names, operation)
        operation.where = self.locations.find(self._take_location())
        syntax.normalize(operation)
        return operation

    def _parse_result_names(self) -> list[tuple[str, int]]:
        names: list[tuple[str, int]] = []
        while self.kind == "ssa":
            name = self.take()
            width = 1
            if self.accept(":"):
                width = int(self.take())
            names.append((name, width))
            if not self.accept(","):
                self.expect("=")
                break
        return names

    def _bind_results(self, names: list[tuple[str, int]], operation: Op) -> None:
        start = 0
        for name, width in names:
            for offset in range(width):
                self.values[f"{name}#{offset}"] = operation.results[start + offset]
            self.values[name] = operation.results[start]
            start += width

    def parse_operand(self) -> Value:
        name = self.take()
        if name not in self.values:
            self.at -= 1
            raise self.fail("a value that is defined above")
        return self.values[name]

    def parse_successor(self) -> tuple[Block, list[Value]]:
        block = self._block(self.take())
        operands: list[Value] = []
        if self.accept("("):
            while self.kind == "ssa":
                operands.append(self.parse_operand())
                self.accept(",")
            if self.accept(":"):
                while self.token != ")":
                    self.parse_type()
                    self.accept(",")
            self.expect(")")
        return block, operands

    def _parse_rest(self, operation: Op) -> list[Type]:
        """What follows an op's name; returns the types of its results."""
        operation.operands = self.listed("(", ")", self.parse_operand)
        if self.token == "[":
            operation.successors = self.listed("[", "]", self.parse_successor)
        if self.accept("<"):
            operation.attributes.update(self.parse_attributes())
            self.expect(">")
        if self.token == "(":
            operation.regions = self.listed("(", ")", lambda: self.parse_region(operation))
        if self.token == "{":
            operation.attributes.update(self.parse_attributes())
        self.expect(":")
        _, results = self._parse_function_type()
        return results


def parse_ttir(text: str) -> list[Function]:
    """The functions of a TTIR module, in order; `PassError` where the text is not TTIR as this engine knows it."""
    return Reader(text).parse_module()
