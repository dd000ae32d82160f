"""`--device` of suites that compile models and run the libraries: the CPU, a CUDA device of this machine, or the emulation."""

import emulated

DEVICES = ("cpu", "cuda", "emulated")


def add_arguments(parser):
    parser.add_argument("--device", choices=DEVICES, default="cpu", help="what the libraries run on; emulated: a CUDA device of tests/ptx, slow")
    parser.add_argument("--gpu", default="ptx", metavar="ARCH", help="the architecture that they are compiled for, with --device=cuda")


def target_flags(args):
    """Flags of `ptc compile`; whoever emulates has the driver in this process from here on, and in those that it forks."""
    if args.device == "emulated":
        emulated.install()
    return [] if args.device == "cpu" else ["--target=cuda", f"--gpu={args.gpu}"]
