"""The registry of rows: operator -> function that draws a case of it."""

import re
from pathlib import Path

import onnx

from case import Case, Rule
from draw import MS, opset_in

ROOT = Path(__file__).resolve().parents[2]
ROWS = {}  # (domain, operator) -> function(draw) -> Case or None (nothing to try with these types)


def row(operators, domain=""):
    """Registers the function for each of the operators, which stand in one text."""

    def register(function):
        for operator in operators.split():
            assert (domain, operator) not in ROWS, operator
            ROWS[domain, operator] = function
        return function

    return register


def available(opset):
    """The rows whose operators exist in this opset of ai.onnx, in a fixed order."""
    found = []
    for domain, operator in sorted(ROWS):
        if domain == MS:
            found.append((domain, operator))
        elif onnx.defs.has(operator, domain):
            try:
                if not onnx.defs.get_schema(operator, opset_in(domain, opset), domain).deprecated:
                    found.append((domain, operator))
            except onnx.defs.SchemaError:
                pass
    return found


def prim_ulps():
    """The error in ulp that each row of PrimPointwise.td states."""
    text = (ROOT / "ir" / "prim" / "PrimPointwise.td").read_text()
    found = re.findall(r'Prim_(?:Unary|Binary)<"(\w+)",[^\n]*?(?:, (\d+))?>;', text)
    return {name: int(ulp or 0) for name, ulp in found}


ULPS = prim_ulps()


def case(d, inputs, attributes=None, **more):
    return Case(d.operator, d.domain, d.opset, list(inputs), attributes or {}, **more)


# Sums of products accumulate in f32 at least, in any order: 16 roundings of the terms' magnitude, and one of the result.
SUMS = Rule(ulp=1, slack=16, scale="magnitude", wide=True, zero=False)
# Compositions of a few rows, each within its own ulp.
COMPOSED = Rule(ulp=8, slack=8, scale="output", wide=True, zero=False)
