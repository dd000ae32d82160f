"""gate.py IN.json OUT.json FACT: a baseline in which one fact is another one, as if the model had compiled so before."""
import json
import sys

source, target, fact = sys.argv[1:]
with open(source) as file:
    baseline = json.load(file)
kernels, buffers = baseline["kernels"], baseline["buffers"]


def code(kernel):
    return kernel["code"]["x86-64-v3"]


if fact == "fused":  # all of the last two kernels' nodes in one
    last = kernels.pop()
    kernels[-1]["nodes"][0] += last["nodes"][0]
elif fact == "copy":  # the softmax was not there
    kernels.pop()
elif fact == "name":
    kernels[0]["name"] = "something_else"
elif fact == "vector":
    facts = code(kernels[-1])
    facts["vector_loops"] += facts["scalar_loops"] + 1
    facts["scalar_loops"] = -1
elif fact == "spills":
    code(kernels[0])["spills"] -= 2
elif fact == "size":
    code(kernels[0])["bytes"] = code(kernels[0])["bytes"] * 97 // 100
elif fact == "memory":
    baseline["memory"][0]["peak"]["at_hint"] -= 64
elif fact == "place":
    buffers[-1]["reuses"] = "fc1"
elif fact == "dtype":
    baseline["interface"][1]["dtype"] = "float16"
elif fact == "flops":
    kernels[0]["flops"]["expression"] = "7*batch"
elif fact == "faster":
    kernels[0]["flops"]["at_hint"] += 1
elif fact in ("waived", "expired"):
    kernels[0]["flops"]["at_hint"] -= 1
    until = "2999-12-31" if fact == "waived" else "2020-02-29"
    baseline["waivers"].append({"finding": "work", "reason": "issue 12", "until": until})
elif fact == "format":
    baseline["format"] = 0
elif fact == "digest":
    baseline["model_digest"] = "0" * 64
elif fact == "flag":
    baseline["flags"] = ["--fuse-harder"]
else:
    sys.exit(f"no fact {fact}")

with open(target, "w") as file:
    json.dump(baseline, file)
