"""Libraries for a CUDA device beside PyTorch on the same device, in turns.

    python tests/perf/gpu.py products [--shapes 4096x4096x4096,16x4096x4096:nn] [--dtype f16] [--gpu sm_90a]
    python tests/perf/gpu.py cublaslt [--shapes 64x4096x4096] [--dtype f16] [--gpu sm_90a]
    python tests/perf/gpu.py choices [--shapes 4000x4104x1000:nn] [--layers 28x512:256k1] [--budget 28] [--dtype f16] [--gpu sm_90a]
    python tests/perf/gpu.py convolutions [--layers 56x64:64k3,28x128:512k1r] [--dtype f16] [--gpu sm_90a]
    python tests/perf/gpu.py cudnn [--layers 28x128:128k3d2,14x1024:1024k3g32] [--dtype f16] [--gpu sm_90a]
    python tests/perf/gpu.py rows [gelu softmax ...] [--dtype f32] [--gpu sm_90a]
    python tests/perf/gpu.py reductions [softmax 'sum of 4' ...] [--dtype f32] [--gpu sm_90a]
    python tests/perf/gpu.py attention ['12 x 197' ...] [--dtype f16] [--gpu sm_90a]
    python tests/perf/gpu.py bits [--shapes 1x4096x4096,128x4096x4096] [--dtype f16] [--gpu sm_90a]
    python tests/perf/gpu.py lines ['sort 1' ...] [--dtype f32] [--gpu sm_90a]
    python tests/perf/gpu.py scatters ['rows of 64' ...] [--dtype f32] [--gpu sm_90a]
    python tests/perf/gpu.py models [resnet50 bert_base ...] [--dtype f16 | --autocast f16] [--gpu sm_90a]
    python tests/perf/gpu.py errors [detr_r50 ...] [--draws 6] [--dtype f32] [--gpu sm_90a]
    python tests/perf/gpu.py tuned [vit_b_16 ...] [--budget 28] [--dtype f16] [--gpu sm_90a]
    python tests/perf/gpu.py calls [--gpu sm_90a]

products: M x N x K; B is stored as N x K, with `:nn` as K x N. A graph of products of one B and as many A, against
torch.matmul (cuBLAS) in a graph of its own; a time is that of one product. cublaslt: the same, and
the library whose kernels a tuning file leaves to cuBLASLt. choices: one product or convolution a model, `ptc tune` of it on
this device, what that chose, the library as planned and that with its file. convolutions: those of ResNet-50 at batch 1,
SIZExCHANNELS:OUTkKERNEL, then s2 (stride 2), dN (dilation), gN (groups), r (a residual, then ReLU) or n (no ReLU; else with), in the same way beside
torch's on channels-last tensors (cuDNN's fused call; where it is slower, its plain one with what follows); all have a bias. cudnn: other ones
as well, and the library whose kernels a tuning file leaves to cuDNN; its kernels are by torch's profiler.
rows: what memory binds, over 64 Mi elements, against a copy of as many by the driver (100 %: the copy's bytes a second)
and torch.compile. reductions, scatters, attention: a node on data of its own, in copies of which a graph is, beside the fastest that torch has, also
in a graph. bits: products M x N x K (MatMulNBits), each with weights of 4 bits of its own, beside weights dequantised in each run,
torch.matmul of what was dequantised before, and torch._weight_int4pack_mm in bf16; GB/s are of weights and scales. lines: running
sums and sorts along few long lines. models: those of models/export.py at batch 1, --mode=reduce-overhead, made ready side by
side and measured one by one, against eager and torch.compile(mode="reduce-overhead"); with --autocast models in f32, under
torch.autocast there. Launches are of one run: ptc's of the manifest, those of torch's last column by its profiler. tuned: `ptc tune`
of a model on this device, then the library as planned and that with its file, four pairs of them. Errors are
||out - f64|| / ||f64||, of models the mean over eight inputs. errors: those, of models of several draws of weights, since that of one can be a
matter of luck (geometric means). calls: what a run costs besides its kernel, of a model that has one, and what `create` does.
--against PTC: another compiler's library (the one before, say) takes turns with ptc's and has a column of its own.
Needs torch with CUDA, onnx, and what a model is made of (torchvision, transformers). TF32 is off.
"""

import argparse
import importlib
import inspect
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# A mode is the function of its name, which takes the arguments; this is the module that has it.
MODES = {"products": "gpu_products", "cublaslt": "gpu_products", "choices": "gpu_choices", "convolutions": "gpu_convolutions", "cudnn": "gpu_convolutions",
         "rows": "gpu_rows", "reductions": "gpu_reductions", "attention": "gpu_attention", "bits": "gpu_bits", "lines": "gpu_lines", "scatters": "gpu_scatters",
         "models": "gpu_models", "tuned": "gpu_models", "errors": "gpu_errors", "calls": "gpu_calls"}


def main():
    parser = argparse.ArgumentParser(description=inspect.getdoc(sys.modules[__name__]), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=MODES)
    parser.add_argument("names", nargs="*", help="some of what a mode has: models, rows, nodes with this in their names")
    parser.add_argument("--ptc", default=str(ROOT / "build" / "bin" / "ptc"))
    parser.add_argument("--against", metavar="PTC", help="another compiler, in turns; not of calls")
    parser.add_argument("--gpu", default="sm_90a")
    parser.add_argument("--dtype", choices=("f32", "f16", "bf16"), default="f16")
    parser.add_argument("--autocast", choices=("f16", "bf16"), help="of models")
    parser.add_argument("--eager", action="store_true", help="models: no torch.compile, which takes half a minute each")
    parser.add_argument("--draws", type=int, default=6, help="of errors")
    parser.add_argument("--budget", default="28", help="of tuned and choices: seconds")
    parser.add_argument("--shapes", help="of products, cublaslt, choices and bits")
    parser.add_argument("--layers", help="of convolutions, cudnn and choices")
    arguments = parser.parse_args()

    if arguments.what == "calls":
        os.environ["CUDA_CACHE_DISABLE"] = "1"
    import torch  # not before: --help needs none

    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    with tempfile.TemporaryDirectory() as folder:
        arguments.folder = Path(folder)
        getattr(importlib.import_module(MODES[arguments.what]), arguments.what)(arguments)


if __name__ == "__main__":
    main()
