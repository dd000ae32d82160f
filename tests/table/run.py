"""The table of support: what `ptc ops` says of every operator, version, type and target is what compiles.

    python tests/table/run.py             checks SUPPORT.md, and each type of each operator against `ptc check`
    python tests/table/run.py --update    writes SUPPORT.md anew, with errors that tests/sweep has seen since
    python tests/table/run.py --filter '^Conv$' -v

The types in the table are those that `ptc ops` lists; a node of ONNX's own tests is compiled in each of them, and in each
that the schema allows besides, which must be refused. The column of errors has the largest that tests/sweep has seen, in
units in the last place: BUILD/tests/sweep/results.json must not exceed it.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import onnx

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conformance")]

import nodes  # noqa: E402
import suite  # noqa: E402

TABLE = HERE / "SUPPORT.md"
HEAD = """# Operators, versions, element types

Written by `tests/table/run.py --update` from `ptc ops --json`, and checked by `tests/table`: each type of each operator is compiled. Versions are those at which
an operator changed; a model's opset means the newest that is not above it. Types are those of the first input in the newest version; `ptc ops NAME --types` has
those of the others. `all` are all element types of ONNX but {missing}. Targets: {targets}.

The last column is the largest error that `tests/sweep` has seen of a type, in units in the last place, against the specification
or another implementation, as [its README](../sweep/README.md) says: of sums and of results near 0 that is many units, and their rows are judged
by what the terms add up to. Types without one were exact, or have not been drawn.

| operator | versions | types | largest error, ulp |
|---|---|---|---|
"""
ULPS = re.compile(r"^\| `([\w.]+)` \|.*\| ([^|]*) \|$", re.M)
# Whose attributes, or other inputs, say the types: one of them cannot vary alone.
TIED = {"LabelEncoder", "If", "Loop", "Scan", "SequenceMap", "BitCast", "SequenceInsert"}
# Where a schema allows more than compiles: operator and constraint. It may only get shorter.
GAPS = {
    ("ai.onnx", "Attention", "T1"): "Q and K of another type than V",
    ("ai.onnx", "Attention", "T2"): "V of another type than Q and K",
    ("ai.onnx", "CenterCropPad", "Tind"): "a shape of type int32",
    ("ai.onnx", "GridSample", "T1"): "strings",
    ("ai.onnx", "RMSNormalization", "T"): "X of another type than the scale",
    ("ai.onnx", "RMSNormalization", "V"): "a scale of another type than X",
}
STOPPED = ("PTC0305", "PTC0309", "PTC0408")  # a value that decides a shape


def operators(ptc):
    return json.loads(subprocess.run([ptc, "ops", "--json"], check=True, capture_output=True, text=True).stdout)


def full_name(op):
    return op["name"] if op["domain"] == "ai.onnx" else f"{op['domain']}.{op['name']}"


def short(type_):
    return match[1] if (match := re.fullmatch(r"tensor\((\w+)\)", type_)) else type_


def first_types(version):
    if not version["inputs"]:
        return []
    kind = version["inputs"][0]
    return [short(t) for t in version["types"].get(kind, [kind])]


def read_ulps(text):
    """{(operator, type): ulp} of a table."""
    return {(name, type_): float(ulp) for name, cell in ULPS.findall(text)
            for type_, ulp in re.findall(r"(\w+) ([\d.e+]+)", cell)}


def seen_ulps(build):
    """The same of the last run of tests/sweep."""
    path, worst = build / "tests" / "sweep" / "results.json", defaultdict(float)
    for _, domain, name, _, type_, outcome in json.loads(path.read_text()) if path.exists() else []:
        if outcome["word"] == "pass" and outcome["ulp"] > 0:
            key = (f"{domain}.{name}" if domain else name, nodes_type(type_))
            worst[key] = max(worst[key], round_up(outcome["ulp"]))
    return worst


def nodes_type(type_):
    """numpy's name of a type as ONNX writes it."""
    return {"float32": "float", "float64": "double"}.get(type_, type_.replace("_", ""))


def round_up(ulp):
    """Two digits, away from zero: the table does not change with every run."""
    if ulp == 0:
        return 0.0
    scale = 10 ** (len(str(int(ulp))) - 2) if ulp >= 10 else 0.1
    return round(-(-ulp // scale) * scale, 1)


def table(listed, ulps):
    every = {short(t) for op in listed["operators"] for v in op["versions"] for ts in v["types"].values() for t in ts
             if t.startswith("tensor(")}
    known = {name.lower().replace("_", "") for name in onnx.TensorProto.DataType.keys()} - {"undefined"}
    missing = ", ".join(sorted(known - every)) or "none"
    targets = "; ".join(f"`{t['name']}`" + (f" without {', '.join(t['without_types'])}" if t["without_types"] else "")
                        for t in listed["targets"])
    rows = []
    for op in listed["operators"]:
        name, versions = full_name(op), op["versions"]
        types = first_types(versions[-1]) if versions else []
        shown = "all" if set(types) == every else ", ".join(types) or ("tried" if not versions else "no input")
        cell = ", ".join(f"{type_} {ulp:g}" for (other, type_), ulp in sorted(ulps.items()) if other == name)
        numbers = ", ".join(str(v["since"]) for v in versions) or f"from {op['oldest_version']}"
        rows.append(f"| `{name}` | {numbers} | {shown} | {cell} |\n")
    gaps = "".join(f"- `{name}`, `{constraint}`: {what}\n" for (_, name, constraint), what in GAPS.items())
    return HEAD.format(missing=missing, targets=targets) + "".join(rows) + "\nWhat schemas allow and ptc refuses:\n\n" + gaps


def checked(ptc, model, folder, *flags):
    """`ptc check --json` of a model: its nodes by name."""
    path = folder / "all.onnx"
    onnx.save(model, path)
    done = subprocess.run([ptc, "check", path, "--json", "-q", *flags], capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(done.stderr[-2000:])
    answer = json.loads(done.stdout)
    return {node["name"]: node for node in answer["nodes"]}, done.stderr


def probe(ptc, build, pattern, elements, *flags):
    """{key of a variant: None or why it does not compile}."""
    cases = suite.load(build / "tests" / "conformance")
    made = [variant for model, schema, arrays in nodes.single_nodes(cases, suite.read)
            if re.search(pattern, schema.name) and schema.name not in TIED
            for variant in nodes.variants(model, schema, arrays) if nodes.element_of(variant.type) in elements]
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        for model, names in nodes.joined(made):
            states, messages = checked(ptc, model, Path(folder), *flags)
            for name, variant in names.items():
                state = states[name]
                if state["state"] in ("supported", "refused"):
                    results[variant.key] = f"{state['code']}: {state['reason']}" if state["state"] == "refused" else None
                else:
                    results[variant.key] = f"unchecked: {messages[:200]!r}"
    return results


def listed_types(listed):
    return {(op["domain"], op["name"], version["since"], constraint): set(types)
            for op in listed["operators"] for version in op["versions"] for constraint, types in version["types"].items()}


def deviations(listed, results, is_whole):
    types, met = listed_types(listed), set()
    for key, reason in sorted(results.items()):
        *place, type_ = key
        is_listed = type_ in types.get(tuple(place), ())
        stopped = reason and reason.startswith(STOPPED)
        gap = (place[0], place[1], place[3])
        if is_listed and reason and not stopped and gap in GAPS:
            met.add(gap)
        elif is_listed and reason and not stopped:
            yield f"{'/'.join(map(str, key))}: listed, but {reason}"
        elif not is_listed and not reason:
            yield f"{'/'.join(map(str, key))}: compiles, but is not listed"
    if is_whole:
        yield from (f"{'/'.join(gap)}: compiles; take it out of GAPS" for gap in GAPS if gap not in met)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=Path("build"))
    parser.add_argument("--update", action="store_true", help="write SUPPORT.md anew")
    parser.add_argument("--filter", default="", metavar="REGEX", help="only operators whose name it finds")
    parser.add_argument("--models", action="store_true", help="accepted, without effect")
    parser.add_argument("-j", type=int, default=1, help="accepted, without effect")
    parser.add_argument("-v", "--verbose", action="store_true")
    args = parser.parse_args()
    build = args.build.resolve()
    ptc = build / "bin" / "ptc"
    listed = operators(ptc)
    text = TABLE.read_text() if TABLE.exists() else ""
    ulps, seen = read_ulps(text), seen_ulps(build)
    failures = []
    if args.update:  # nothing else decides what is written: the same table from the same run
        ulps |= {key: max(ulp, ulps.get(key, 0)) for key, ulp in seen.items()}
        TABLE.write_text(table(listed, ulps))
    elif not args.filter:
        if text != table(listed, ulps):
            failures.append("SUPPORT.md is not what ptc says: tests/table/run.py --update")
        failures += [f"{name}, {type_}: an error of {ulp:g} ulp; the table says {ulps[name, type_]:g}"
                     for (name, type_), ulp in sorted(seen.items()) if ulp > ulps.get((name, type_), float("inf"))]
    elements = {nodes.element_of(t) for op in listed["operators"] for v in op["versions"] for ts in v["types"].values() for t in ts}
    results = probe(ptc, build, args.filter, elements)
    failures += deviations(listed, results, not args.filter)
    if args.verbose:
        for key, reason in sorted(results.items()):
            print("/".join(map(str, key)), reason or "ok")
    print("".join(f"{line}\n" for line in failures), end="")
    operators_seen = len({key[:2] for key in results})
    print(f"{len(results)} types of {operators_seen} operators tried, {sum(r is None for r in results.values())} compile")
    print(f"{len(results) + 2 - len(failures)} passed, {len(failures)} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
