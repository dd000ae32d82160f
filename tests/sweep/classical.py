"""Operators of ai.onnx.ml: features, encoders and their labels, linear models, support vectors, trees."""

import sys
from pathlib import Path

import numpy as np

import oracle as oracles
from case import ML, Case, Rule
from draw import STRING, TYPES, is_float, is_string
from movement import ints
from rows import case, row

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "conformance"))
from contrib_cases import forest  # noqa: E402

# Sums of at most some hundred products in f32, of ptc's and of the oracle's.
SCORES = Rule(ulp=16, slack=64, scale="output", zero=False)
# What an exponential, a tanh or a power makes of such errors.
CURVED = Rule(ulp=64, slack=512, scale="output", zero=False)
WORDS = ["", "a", "b", "cat", "dog", "Dog", "über", "日本", "a longer string that no small buffer holds", "x y", "0"]


def _rows(d, kind=None, features=None, style="tame"):
    kind = kind if kind is not None else d.type(d.schema.type_constraints[0].type_param_str)
    x = d.values(kind, [d.integer(1, 9), features or d.integer(1, 6)], style)
    return x.astype(np.float32).astype(kind)


def _words(d, count):
    """Different strings."""
    return [WORDS[i] for i in d.rng.permutation(len(WORDS))[:count]]


def _reals(d, count, low=-2, high=2):
    return [d.number(low, high) for _ in range(count)]


# ---- Features --------------------------------------------------------------------------------------------------------


@row("ArrayFeatureExtractor", ML)
def array_feature_extractor(d):
    x = d.values(d.type("T"), d.shape(1, 3, most=200, zero=0))
    at = ints([d.integer(0, x.shape[-1] - 1) for _ in range(d.integer(1, 5))])
    return case(d, [x, at], oracle=lambda v, i: np.take(v.reshape(1, -1) if v.ndim == 1 else v, i, -1))


@row("Binarizer", ML)
def binarizer(d):
    x, threshold = _rows(d), d.number(-1, 1)
    return case(d, [x], {"threshold": threshold}, oracle=lambda v: (v > threshold).astype(v.dtype))


@row("FeatureVectorizer", ML)
def feature_vectorizer(d):
    kind, rows = d.type("T1"), d.integer(1, 7)
    parts = [d.values(kind, [rows, d.integer(1, 4)], "tame") for _ in range(d.integer(1, 3))]
    widths = [part.shape[1] if d.often(0.7) else d.integer(1, 5) for part in parts]
    fit = lambda v, width: np.pad(v[:, :width], [(0, 0), (0, max(0, width - v.shape[1]))])
    return case(d, parts, {"inputdimensions": widths},
                oracle=lambda *given: np.concatenate([fit(v.astype(np.float32), w) for v, w in zip(given, widths)], 1))


@row("Imputer", ML)
def imputer(d):
    x = _rows(d)
    count = x.shape[1] if d.often(0.6) else 1
    if is_float(x.dtype):
        replaced = float("nan") if d.often(0.6) else 0.0
        x = np.where(d.rng.random(x.shape) < 0.3, np.full_like(x, replaced), x)
        new = _reals(d, count)
        missing = (lambda v: np.isnan(v)) if replaced != replaced else (lambda v: v == replaced)
        return case(d, [x], {"imputed_value_floats": new, "replaced_value_float": replaced},
                    oracle=lambda v: np.where(missing(v), np.array(new, v.dtype), v))
    replaced, new = d.integer(-2, 2), [d.integer(-9, 9) for _ in range(count)]
    return case(d, [x], {"imputed_value_int64s": new, "replaced_value_int64": replaced},
                oracle=lambda v: np.where(v == replaced, np.array(new, v.dtype), v))


@row("Normalizer", ML)
def normalizer(d):
    x, norm = _rows(d), d.choice(["MAX", "L1", "L2"])
    if d.often(0.3):
        x[0] = 0
    if norm == "MAX":  # whether the largest element or the largest magnitude is meant is not said
        x = np.abs(x)

    def oracle(v):
        wide = v.astype(np.float64)
        size = {"MAX": wide.max, "L1": np.abs(wide).sum, "L2": (wide**2).sum}[norm](axis=1, keepdims=True)
        size = np.sqrt(size) if norm == "L2" else size
        return (wide / np.where(size == 0, 1, size)).astype(np.float32)

    return case(d, [x], {"norm": norm}, oracle=oracle, rule=Rule(ulp=8, zero=False))


@row("Scaler", ML)
def scaler(d):
    x = _rows(d)
    count = lambda: x.shape[1] if d.often(0.6) else 1
    offset, scale = _reals(d, count()), _reals(d, count())
    # (x - offset) is rounded to f32, and so is its product.
    oracle = lambda v: ((v.astype(np.float32) - np.float32(offset)) * np.float32(scale)).astype(np.float32)
    return case(d, [x], {"offset": offset, "scale": scale}, oracle=oracle, rule=Rule(ulp=1, zero=False))


# ---- Labels ----------------------------------------------------------------------------------------------------------


def _lookup(table, otherwise, kind):
    """A function that maps each element; NaN is a key like any."""

    def oracle(v):
        key = lambda k: "nan" if isinstance(k, float) and k != k else k
        known = {}
        for k, value in table:
            known.setdefault(key(k), value)
        out = [known.get(key(k), otherwise) for k in v.ravel().tolist()]
        return np.array(out, kind).reshape(v.shape)

    return oracle


@row("OneHotEncoder", ML)
def one_hot_encoder(d):
    kind = d.type("T")
    shape = d.shape(1, 3, most=30, zero=0)
    if is_string(kind):
        categories = _words(d, d.integer(1, 6))
        x = d.values(kind, shape)
        return case(d, [x], {"cats_strings": categories, "zeros": 1},
                    oracle=lambda v: np.array([[c == e for c in categories] for e in v.ravel()], np.float32).reshape(*v.shape, -1))
    categories = [int(c) for c in d.rng.permutation(12)[: d.integer(1, 6)] - 4]
    x = d.values(kind, shape, "small")
    if is_float(kind):  # elements between integers: which category is theirs is not said
        x = np.rint(x)
    return case(d, [x], {"cats_int64s": categories, "zeros": 1},
                oracle=lambda v: (v[..., None] == np.array(categories)).astype(np.float32))


@row("CategoryMapper", ML)
def category_mapper(d):
    count = d.integer(1, 7)
    names, numbers = _words(d, count), [int(v) for v in d.rng.permutation(20)[:count] - 10]
    attributes = {"cats_strings": names, "cats_int64s": numbers}
    shape = d.shape(1, 3, most=40)
    if d.often(0.5):
        otherwise = d.integer(-3, 99)
        return case(d, [d.values(STRING, shape)], attributes | {"default_int64": otherwise},
                    oracle=_lookup(list(zip(names, numbers)), otherwise, np.int64), results=(("int64", len(shape)),))
    return case(d, [d.values(np.int64, shape, "small")], attributes | {"default_string": "none"},
                oracle=_lookup(list(zip(numbers, names)), "none", object), results=((STRING, len(shape)),))


def _entries(d, kind, count, distinct):
    """Keys or values of a LabelEncoder."""
    if is_string(kind):
        return _words(d, count) if distinct else [d.choice(WORDS) for _ in range(count)]
    if is_float(kind):
        numbers = [float(v) for v in (d.rng.permutation(24)[:count] - 12) / 4]
        if distinct and d.often(0.3):
            numbers[0] = float("nan")
        return numbers
    return [int(v) for v in d.rng.permutation(24)[:count] - 12]


def _label_attributes(prefix, kind, entries):
    from onnx import numpy_helper
    suffix = {"object": "strings", "int64": "int64s", "float32": "floats"}.get(kind.name)
    if suffix:
        return {f"{prefix}_{suffix}": entries}
    return {f"{prefix}_tensor": numpy_helper.from_array(np.array(entries, kind))}


@row("LabelEncoder", ML)
def label_encoder(d):
    from onnx import numpy_helper
    shape = d.shape(1, 3, most=60)
    if d.version == 1:
        names, backward = _words(d, d.integer(1, 8)), d.often(0.5)
        table = [(i, name) if backward else (name, i) for i, name in enumerate(names)]
        x = d.values(np.int64, shape, "small") if backward else d.values(STRING, shape)
        return case(d, [x], {"classes_strings": names}, oracle=_lookup(table, "_Unused" if backward else -1, object if backward else np.int64),
                    results=((STRING if backward else "int64", len(shape)),))
    given, made = d.type("T1"), d.type("T2")
    count = d.integer(1, 9)
    keys, values = _entries(d, given, count, True), _entries(d, made, count, False)
    attributes = _label_attributes("keys", given, keys) | _label_attributes("values", made, values)
    if any(name.endswith("_tensor") for name in attributes) and not all(name.endswith("_tensor") for name in attributes):
        attributes = {"keys_tensor": numpy_helper.from_array(np.array(keys, given)), "values_tensor": numpy_helper.from_array(np.array(values, made))}
    otherwise = "none" if is_string(made) else 7.0 if is_float(made) else 7
    if "values_tensor" in attributes:
        attributes["default_tensor"] = numpy_helper.from_array(np.array([otherwise], made))
    else:
        attributes[{"object": "default_string", "int64": "default_int64", "float32": "default_float"}[made.name]] = otherwise
    x = d.values(given, shape, "small")
    if is_float(given):
        x = np.where(d.rng.random(x.shape) < 0.2, np.full_like(x, np.nan), np.rint(x * 4) / 4)
    return case(d, [x], attributes, oracle=_lookup(list(zip(keys, values)), otherwise, made), results=((made, len(shape)),))


# ---- Models ----------------------------------------------------------------------------------------------------------

TRANSFORMS = ("NONE", "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")


def _softmax(v, counts):
    e = np.where(counts, np.exp(v - v.max(1, keepdims=True)), 0)
    return np.where(counts, e, v * np.exp(-v.max(1, keepdims=True))) / e.sum(1, keepdims=True)


_TRANSFORMED = {"NONE": lambda v: v, "LOGISTIC": lambda v: 1 / (1 + np.exp(-v)), "SOFTMAX": lambda v: _softmax(v, np.ones(v.shape, bool)),
                "SOFTMAX_ZERO": lambda v: _softmax(v, np.abs(v) > 1e-7)}


def _transformed(made, is_single=False):
    """The case with the scores that onnxruntime gives without `post_transform`, transformed as the specification says;
    `is_single`: of two classes the second has a score, the first its opposite."""
    name = made.attributes.get("post_transform", "NONE")
    if name in ("NONE", 0):
        return made
    name = name if isinstance(name, str) else ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO")[name]
    plain = {key: value for key, value in made.attributes.items() if key != "post_transform"}

    def oracle(*inputs):
        *labels, scores = oracles.by_onnxruntime(oracles.stand_in(Case(**{**made.__dict__, "attributes": plain, "inputs": list(inputs), "oracle": None})))
        scores = scores.astype(np.float64)
        return [*labels, _TRANSFORMED[name](np.stack([-scores[:, 1], scores[:, 1]], 1) if is_single else scores)]

    made.oracle = oracle
    return made


def _classes(d, count, name="classlabels_ints"):
    """Labels as attributes, and the type of what a classifier answers."""
    if d.often(0.5):
        return {"classlabels_strings": _words(d, count)}, STRING
    return {name: [int(v) for v in d.rng.permutation(30)[:count]]}, np.dtype(np.int64)


def _scored(d, x, attributes, rule):
    """A regression. onnxruntime has the operators in f32 only, which holds what `_rows` draws."""
    made = case(d, [x], attributes, rule=rule, results=((np.float32, 2),), stand_in=np.float32)
    return _transformed(made) if attributes.get("targets", attributes.get("n_targets", 1)) > 1 else made  # one score stays


def _classified(d, x, attributes, label, rule, is_single=False):
    made = case(d, [x], attributes, outputs=2, rule=rule, results=((label, 1), (np.float32, 2)), stand_in=np.float32)
    return _transformed(made, is_single)


@row("LinearRegressor", ML)
def linear_regressor(d):
    x, targets = _rows(d), d.integer(1, 3)
    attributes = {"coefficients": _reals(d, targets * x.shape[1]), "targets": targets, "post_transform": d.choice(TRANSFORMS)}
    if d.often(0.7):
        attributes["intercepts"] = _reals(d, targets)
    return _scored(d, x, attributes, CURVED)


@row("LinearClassifier", ML)
def linear_classifier(d):
    x, classes = _rows(d), d.integer(2, 4)
    rows = 1 if classes == 2 and d.often(0.5) else classes
    labels, kind = _classes(d, classes)
    attributes = labels | {"coefficients": _reals(d, rows * x.shape[1]), "intercepts": _reals(d, rows), "post_transform": d.choice(TRANSFORMS)}
    return _classified(d, x, attributes, kind, CURVED, rows == 1)


def _kernel(d, features, vectors):
    kind = d.choice(["LINEAR", "RBF", "POLY", "SIGMOID"])
    return {"kernel_type": kind, "kernel_params": [d.number(0.05, 0.5), d.number(0, 1), float(d.integer(1, 3))],
            "support_vectors": _reals(d, vectors * features)}


@row("SVMRegressor", ML)
def svm_regressor(d):
    x, vectors = _rows(d), d.integer(1, 8)
    attributes = {"n_supports": vectors, "coefficients": _reals(d, vectors), "rho": _reals(d, 1)}
    if d.often(0.2):
        attributes["one_class"] = 1
    if d.often(0.15):  # without support vectors: a linear model
        return _scored(d, x, {"coefficients": _reals(d, x.shape[1]), "rho": _reals(d, 1), "n_supports": 0, "kernel_type": "LINEAR"}, CURVED)
    return _scored(d, x, attributes | _kernel(d, x.shape[1], vectors), CURVED)


@row("SVMClassifier", ML)
def svm_classifier(d):
    x, classes = _rows(d), d.integer(2, 4)
    labels, kind = _classes(d, classes)
    pairs = classes * (classes - 1) // 2
    if d.often(0.2):  # without support vectors: a linear model with a row of coefficients a class
        attributes = {"coefficients": _reals(d, classes * x.shape[1]), "rho": _reals(d, 1), "kernel_type": "LINEAR"}
        transform = d.choice(TRANSFORMS)
        names = next(iter(labels.values()))

        def oracle(v):  # onnxruntime answers 1 or 0 in the place of labels
            scores = v.astype(np.float64) @ np.array(attributes["coefficients"]).reshape(classes, -1).T + attributes["rho"][0]
            return [np.array([names[i] for i in scores.argmax(1)], kind), _TRANSFORMED[transform](scores)]

        return case(d, [x], labels | attributes | {"post_transform": transform}, outputs=2, rule=CURVED, oracle=oracle, results=((kind, 1), (np.float32, 2)))
    sizes = [d.integer(1, 4) for _ in range(classes)]
    attributes = labels | {"vectors_per_class": sizes, "coefficients": _reals(d, (classes - 1) * sum(sizes)), "rho": _reals(d, pairs)}
    if d.often(0.4):
        attributes |= {"prob_a": _reals(d, pairs, -2, -0.2), "prob_b": _reals(d, pairs, -0.5, 0.5)}
        made = _classified(d, x, attributes | _kernel(d, x.shape[1], sum(sizes)), kind, CURVED)
        made.avoid = "reference"
        return made
    attributes["post_transform"] = d.choice(TRANSFORMS)
    return _classified(d, x, attributes | _kernel(d, x.shape[1], sum(sizes)), kind, CURVED, classes == 2)


MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")


def _features(d, kind):
    """Values that often equal a threshold, and some that are missing."""
    rows, features = d.integer(1, 12), d.integer(1, 6)
    x = (d.rng.integers(-6, 7, (rows, features)) / (4 if is_float(kind) else 1)).astype(kind)
    if is_float(kind) and d.often(0.3):
        x = np.where(d.rng.random(x.shape) < 0.2, np.full_like(x, np.nan), x)
    return x


def _one_target(attributes, prefix, targets):
    """A tree adds to one target alone, as those of boosted ensembles: what a target gets that no leaf names is not said."""
    trees = attributes[f"{prefix}_treeids"]
    attributes[f"{prefix}_ids"] = [tree % targets for tree in trees]
    return attributes


@row("TreeEnsembleRegressor", ML)
def tree_regressor(d):
    x, targets = _features(d, d.type("T")), d.integer(1, 3)
    mode = d.choice(MODES) if d.often(0.6) else list(MODES)
    ids = list(range(targets)) if d.often(0.4) else [0]
    trees = forest(d.rng, targets + d.integer(0, 6), d.integer(1, 4), x.shape[1], targets, mode, ids=ids, missing=d.often(0.3))
    trees = trees if len(ids) == targets else _one_target(trees, "target", targets)
    attributes = trees | {"n_targets": targets, "aggregate_function": d.choice(["SUM", "SUM", "AVERAGE", "MIN", "MAX"]),
                          "post_transform": d.choice(TRANSFORMS)}
    if d.often(0.4):
        attributes["base_values"] = _reals(d, targets)
    return _scored(d, x, attributes, SCORES)


@row("TreeEnsembleClassifier", ML)
def tree_classifier(d):
    x, classes = _features(d, d.type("T1")), d.integer(2, 4)
    labels, kind = _classes(d, classes, "classlabels_int64s")
    binary = classes == 2 and d.often(0.5)  # one weight a leaf, all for one class
    named = int(binary and d.often(0.4))  # that one
    whole = d.often(0.5)  # each leaf has a weight for all classes
    trees = forest(d.rng, classes + d.integer(0, 6), d.integer(1, 4), x.shape[1], classes, d.choice(MODES), prefix="class",
                   ids=[named] if binary or not whole else list(range(classes)), lo=0.0 if d.often(0.5) else -1.0, missing=d.often(0.2))
    if not binary and not whole:
        trees = _one_target(trees, "class", classes)
    # Of a score of the first of two classes alone, other transforms are not specified.
    attributes = trees | labels | {"post_transform": d.choice(("NONE", "LOGISTIC") if binary and not named else TRANSFORMS)}
    if not binary and d.often(0.3):
        attributes["base_values"] = _reals(d, classes)
    made = case(d, [x], attributes, outputs=2, rule=SCORES, results=((kind, 1), (np.float32, 2)), stand_in=np.float32)
    if binary:
        return made
    scored, names = _transformed(made).oracle or (lambda v: oracles.by_onnxruntime(oracles.stand_in(made))), next(iter(labels.values()))
    plain = Case(**{**made.__dict__, "attributes": attributes | {"post_transform": "NONE"}, "oracle": None})

    def oracle(v):  # the label of the highest score
        if classes == 2:
            raw = _tree_scores(attributes, v)
            return [np.array([names[i] for i in raw.argmax(1)], kind), _TRANSFORMED[attributes["post_transform"]](raw)]
        raw = oracles.by_onnxruntime(oracles.stand_in(plain))[1]
        return [np.array([names[i] for i in raw.argmax(1)], kind), scored(v)[1]]

    made.oracle = oracle
    return made


_BRANCHES = {"BRANCH_LEQ": np.less_equal, "BRANCH_LT": np.less, "BRANCH_GTE": np.greater_equal, "BRANCH_GT": np.greater, "BRANCH_EQ": np.equal,
             "BRANCH_NEQ": np.not_equal}


def _tree_scores(attributes, x):
    """What the leaves of two classes add up to for each row, in f64; onnxruntime takes some such forests for binary ones."""
    nodes = {key: i for i, key in enumerate(zip(attributes["nodes_treeids"], attributes["nodes_nodeids"]))}
    weights = list(zip(*(attributes[f"class_{name}"] for name in ("treeids", "nodeids", "ids", "weights"))))
    missing = attributes.get("nodes_missing_value_tracks_true", [0] * len(nodes))
    scores = np.zeros((len(x), 2)) + attributes.get("base_values", 0)
    for row, score in zip(x.astype(np.float32), scores):
        for tree in dict.fromkeys(attributes["nodes_treeids"]):
            node = 0
            while (mode := attributes["nodes_modes"][i := nodes[tree, node]]) != "LEAF":
                value = row[attributes["nodes_featureids"][i]]
                is_true = missing[i] if np.isnan(value) and missing[i] else _BRANCHES[mode](value, np.float32(attributes["nodes_values"][i]))
                node = attributes[f"nodes_{'true' if is_true else 'false'}nodeids"][i]
            for _, _, target, weight in (w for w in weights if w[:2] == (tree, node)):
                score[target] += np.float32(weight)
    return scores


@row("TreeEnsemble", ML)
def tree_ensemble(d):
    from onnx import numpy_helper
    kind, targets, trees, depth = d.type("T"), d.integer(1, 3), d.integer(3, 7), d.integer(1, 4)
    x = _features(d, kind)
    inner, total = 2**depth - 1, trees * (2**depth - 1)
    leaves = trees * 2**depth
    child = lambda node: [(2 * node + 1, 0), (2 * node + 2, 0)] if 2 * node + 2 < inner else [(2 * node + 1 - inner, 1), (2 * node + 2 - inner, 1)]
    nodes = {name: [] for name in ("truenodeids", "trueleafs", "falsenodeids", "falseleafs")}
    for tree in range(trees):
        for node in range(inner):
            for side, (at, leaf) in zip(("true", "false"), child(node)):
                nodes[f"{side}nodeids"].append(at + tree * (2**depth if leaf else inner))
                nodes[f"{side}leafs"].append(leaf)
    attributes = {f"nodes_{name}": values for name, values in nodes.items()} | {
        "tree_roots": [tree * inner for tree in range(trees)], "n_targets": targets,
        "nodes_featureids": [d.integer(0, x.shape[1] - 1) for _ in range(total)],
        "nodes_modes": numpy_helper.from_array(d.rng.integers(0, 6, total).astype(np.uint8)),
        "nodes_splits": numpy_helper.from_array((d.rng.integers(-4, 5, total) / 4).astype(kind)),
        "leaf_targetids": [leaf // 2**depth % targets for leaf in range(leaves)],
        "leaf_weights": numpy_helper.from_array(d.values(kind, [leaves], "tame")),
        "aggregate_function": d.integer(0, 3), "post_transform": d.choice([0, 0, 1, 2, 3])}
    if d.often(0.3):
        attributes["nodes_missing_value_tracks_true"] = [d.integer(0, 1) for _ in range(total)]
    made = case(d, [x], attributes, rule=SCORES, results=((kind, 2),), stand_in=np.float32 if kind == np.float16 else None)
    if targets == 1:
        attributes["post_transform"] = 0
    return _transformed(made)
