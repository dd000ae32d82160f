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
those of the others. `all` are all element types of ONNX (missing: {missing}).

Everything is compiled for the CPU. Column `cuda`: `yes` where every program with the operator is compiled for a CUDA device; `but` types
where those are refused; `no` where all are. `host`: of all types, or of those that follow, values lie in the host's memory (strings,
sequences, optional values, maps), so that the operator runs there, beside the device. Control flow and the sizes that a run finds are
the host's, too, whatever the target.

The last column is the largest error that `tests/sweep` has seen of a type, in units in the last place, against the specification
or another implementation, as [its README](../sweep/README.md) says: of the result itself for pointwise operators; of what the terms add up to,
or of the largest result, for sums and what is made of them. Types without one were exact, or have not been drawn.

| operator | versions | types | cuda | largest error, ulp |
|---|---|---|---|---|
"""
ULPS = re.compile(r"^\| `([\w.]+)` \|.*\| ([^|]*) \|$", re.M)
# What of ONNX has no row here, and why.
ABSENT = {
    "ai.onnx.ImageDecoder": "compressed images: decode them before the model",
    "ai.onnx.preview.training.Gradient": "training",
}
MARGIN = 2  # of sums: vectors of another processor's width add them up in another order
HOST = re.compile(r"seq\(|optional\(|map\(|tensor\(string\)")  # values that live in the host's memory
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
    """The same of the last run of tests/sweep, and which of them are sums."""
    path, worst, sums = build / "tests" / "sweep" / "results.json", defaultdict(float), set()
    for _, domain, name, _, type_, outcome in json.loads(path.read_text()) if path.exists() else []:
        if outcome["word"] == "pass" and outcome["ulp"] > 0:
            key = (f"{domain}.{name}" if domain else name, nodes_type(type_))
            worst[key] = max(worst[key], round_up(outcome["ulp"]))
            if outcome["has_scale"]:
                sums.add(key)
    return worst, sums


def nodes_type(type_):
    """numpy's name of a type as ONNX writes it."""
    return {"float32": "float", "float64": "double"}.get(type_, type_.replace("_", ""))


def round_up(ulp):
    """Two digits, away from zero: the table does not change with every run."""
    if ulp == 0:
        return 0.0
    scale = 10 ** (len(str(int(ulp))) - 2) if ulp >= 10 else 0.1
    return round(-(-ulp // scale) * scale, 1)


def table(listed, ulps, devices):
    every = {short(t) for op in listed["operators"] for v in op["versions"] for ts in v["types"].values() for t in ts
             if t.startswith("tensor(")}
    known = {name.lower().replace("_", "") for name in onnx.TensorProto.DataType.keys()} - {"undefined"}
    missing = ", ".join(sorted(known - every)) or "none"
    rows = []
    for op in listed["operators"]:
        name, versions = full_name(op), op["versions"]
        types = first_types(versions[-1]) if versions else []
        shown = "all" if set(types) == every else ", ".join(types) or ("tried" if not versions else "no input")
        cell = ", ".join(f"{type_} {ulp:g}" for (other, type_), ulp in sorted(ulps.items()) if other == name)
        numbers = ", ".join(str(v["since"]) for v in versions) or f"from {op['oldest_version']}"
        rows.append(f"| `{name}` | {numbers} | {shown} | {devices.get(name, 'not tried')} | {cell} |\n")
    absent = "".join(f"- `{name.removeprefix('ai.onnx.')}`: {why}\n" for name, why in ABSENT.items())
    return HEAD.format(missing=missing) + "".join(rows) + "\nWhat ONNX has and ptc refuses:\n\n" + absent


def checked(ptc, model, folder, *flags):
    """`ptc check --json` of a model: its nodes by name."""
    path = folder / "all.onnx"
    onnx.save(model, path)
    done = subprocess.run([ptc, "check", path, "--json", "-q", *flags], capture_output=True, text=True)
    if not done.stdout:
        raise RuntimeError(done.stderr[-2000:])
    answer = json.loads(done.stdout)
    return {node["name"]: node for node in answer["nodes"]}, done.stderr


def probe(ptc, made, *flags):
    """{key of a variant: None or why it does not compile}."""
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


def variants_of(build, pattern, elements):
    """A node of each operator that ONNX tests, in each type that its schema allows and ptc knows."""
    cases = suite.load(build / "tests" / "conformance")
    tested = (variant for model, schema, arrays in nodes.single_nodes(cases, suite.read) if schema.name not in nodes.TIED
              for variant in nodes.variants(model, schema, arrays))
    return [v for v in [*tested, *nodes.tied_variants()] if re.search(pattern, v.op) and nodes.element_of(v.type) in elements]


def type_text(proto):
    """What HOST looks for."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return f"tensor({nodes.NAMES.get(proto.tensor_type.elem_type, '')})"
    return {"sequence_type": "seq(", "optional_type": "optional(", "map_type": "map("}.get(kind, "")


def on_device(ptc, variants, refused):
    """{operator: "yes", "host", "but T" or "no"} for CUDA. A node that is refused is taken out, and the others are tried again."""
    of_host = lambda v: any(HOST.search(type_text(value.type)) for value in [*v.model.graph.input, *v.model.graph.output])
    left, states = [v for v in variants if not refused[v.key]], defaultdict(dict)
    for variant in left:
        states[full_key(variant)][short(variant.type)] = "no"
    def settle(members, folder):
        """Notes which of them are compiled."""
        if not members:
            return
        (model, names), = nodes.joined(members)
        found, _ = checked(ptc, model, folder, "--target=cuda")
        stopped = {names[name].key for name in names if found[name]["state"] in ("refused", "behind")}
        rest = [v for v in members if v.key not in stopped]
        if stopped:
            return settle(rest, folder)
        if any(found[name]["state"] != "supported" for name in names):  # not about one node: which, halves tell
            if len(members) > 1:
                settle(members[::2], folder)
                settle(members[1::2], folder)
            return
        for variant in members:
            states[full_key(variant)][short(variant.type)] = "host" if of_host(variant) else "yes"

    with tempfile.TemporaryDirectory() as folder:
        for _, names in list(nodes.joined(left)):
            settle(list(names.values()), Path(folder))
    return {name: describe_device(types) for name, types in states.items()}


def full_key(variant):
    return f"{variant.domain}.{variant.op}" if variant.domain else variant.op


def describe_device(types):
    """Types that one constraint has and another lacks are not told apart: what some input cannot be counts."""
    parts = []
    for word, prefix in (("no", "but "), ("host", "host ")):
        found = [type_ for type_, state in types.items() if state == word]
        if len(found) == len(types):
            return word
        kinds = {"seq" if t.startswith("seq") else "optional" if t.startswith("optional") else t for t in found}
        parts += [prefix + ", ".join(sorted(kinds))] if found else []
    return "; ".join(parts) or "yes"


def contributed(ptc, build, listed, known):
    """The same of operators that ONNX does not test: a model of tests/conformance each."""
    import contrib  # needs onnxruntime, and writes its models
    states, hosts = {}, set()
    for op in listed["operators"]:  # all of whose inputs of the first kind are of the host
        types = first_types(op["versions"][-1]) if op["versions"] else []
        if types and full_name(op) not in known and all(HOST.search(t) or t == "string" for t in types):
            hosts.add(full_name(op))
    with tempfile.TemporaryDirectory() as folder:
        for name, model in nodes.plain_models():
            onnx.save(model, Path(folder) / "plain.onnx")
            done = subprocess.run([ptc, "check", Path(folder) / "plain.onnx", "--target=cuda", "-q"], capture_output=True, text=True)
            states[name] = "yes" if done.returncode == 0 else "no"
    for case in contrib.load(str(ptc), build / "tests" / "conformance"):
        node = onnx.load(case.model).graph.node[0]
        name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        if name not in known and states.get(name) != "yes":  # one may be refused for sizes that it leaves open
            done = subprocess.run([ptc, "check", case.model, "--target=cuda", "-q"], capture_output=True, text=True)
            states[name] = "yes" if done.returncode == 0 else "no"
    for case in suite.load(build / "tests" / "conformance"):  # what stands only beside others
        for name in {node.op_type for node in onnx.load(case.model).graph.node} & hosts - set(states):
            done = subprocess.run([ptc, "check", case.model, "--target=cuda", "-q"], capture_output=True, text=True)
            states[name] = "yes" if done.returncode == 0 else "no"
    return {name: "host" if state == "yes" and name in hosts else state for name, state in states.items()}


def listed_types(listed):
    return {(op["domain"], op["name"], version["since"], constraint): set(types)
            for op in listed["operators"] for version in op["versions"] for constraint, types in version["types"].items()}


def deviations(listed, results):
    types = listed_types(listed)
    for key, reason in sorted(results.items()):
        *place, type_ = key
        is_listed = type_ in types.get(tuple(place), ())
        stopped = reason and reason.startswith(STOPPED)
        if is_listed and reason and not stopped:
            yield f"{'/'.join(map(str, key))}: listed, but {reason}"
        elif not is_listed and not reason:
            yield f"{'/'.join(map(str, key))}: compiles, but is not listed"


def absentees(listed):
    """Operators of ONNX's schemas that are not listed, but for those that stand in ABSENT; and types."""
    versions = {full_name(op) if op["domain"] != "ai.onnx" else f"ai.onnx.{op['name']}": {v["since"]: v for v in op["versions"]} for op in listed["operators"]}
    histories = defaultdict(list)
    for schema in onnx.defs.get_all_schemas_with_history():
        histories[f"{schema.domain or 'ai.onnx'}.{schema.name}"].append(schema)
    for name, history in sorted(histories.items()):
        history.sort(key=lambda schema: schema.since_version)
        for schema, following in zip(history, [*history[1:], None]):
            is_old = name.startswith("ai.onnx.") and not schema.domain and following and following.since_version <= 7
            if is_old or schema.deprecated or name in ABSENT:
                continue
            if schema.since_version not in versions.get(name, {}):
                yield f"{name}, version {schema.since_version}: neither listed nor in ABSENT"
                continue
            have = versions[name][schema.since_version]["types"]
            for constraint in schema.type_constraints:
                if missing := set(constraint.allowed_type_strs) - set(have.get(constraint.type_param_str, ())):
                    yield f"{name}, version {schema.since_version}, {constraint.type_param_str}: {', '.join(sorted(missing))} not listed"


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
    ulps, (seen, sums) = read_ulps(text), seen_ulps(build)
    elements = {nodes.element_of(t) for op in listed["operators"] for v in op["versions"] for ts in v["types"].values() for t in ts}
    variants = variants_of(build, args.filter, elements)
    results = probe(ptc, variants)
    devices = on_device(ptc, variants, results)
    if not args.filter:
        devices |= contributed(ptc, build, listed, devices)
        devices |= {name: "host" for name in ("Optional", "SequenceEmpty", "SequenceConstruct")}  # whose results are values of the host
    failures = [*deviations(listed, results), *absentees(listed)]
    if args.update:  # nothing else decides what is written: the same table from the same run
        ulps |= {key: max(ulp, ulps.get(key, 0)) for key, ulp in seen.items()}
        TABLE.write_text(table(listed, ulps, devices))
    elif not args.filter:
        if text != table(listed, ulps, devices):
            failures.append("SUPPORT.md is not what ptc says: tests/table/run.py --update")
        failures += [f"{key[0]}, {key[1]}: an error of {ulp:g} ulp; the table says {ulps[key]:g}" for key, ulp in sorted(seen.items())
                     if ulp > ulps.get(key, float("inf")) * (MARGIN if key in sums else 1)]
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
