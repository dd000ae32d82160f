"""gpu.py errors: of models of several draws of weights, each exported and compiled in a process of its own."""

import functools
import multiprocessing
import os
import statistics

import torch
from gpu_device import TYPES, Table, compile_both
from gpu_models import MODELS, flags_of, mean_error, mean_error_of_library, prepare, what

TOGETHER = 12  # processes: each has a context, and a model in f64, on the device


def errors(arguments):
    table = Table(arguments, "model", "draws", "ptc", "torch", "ptc / torch", "of each draw", "smaller in")
    names, draws = arguments.names or MODELS, range(arguments.draws)
    tasks = [(name, draw) for name in names for draw in draws]
    with multiprocessing.get_context("spawn").Pool(min(TOGETHER, os.cpu_count()), maxtasksperchild=1) as pool:
        found = pool.imap(functools.partial(_draw, arguments), tasks)
        for name in names:
            of_draws = [next(found) for _ in draws]
            mean = lambda who: f"{statistics.geometric_mean(errors[who] for errors in of_draws):.2e}"
            ratios = [errors["ptc"] / errors["torch"] for errors in of_draws]
            table.row(what(arguments, name), len(draws), mean("ptc"), mean("torch"), f"{statistics.geometric_mean(ratios):.2f}",
                      " ".join(f"{ratio:.2f}" for ratio in ratios), sum(ratio < 1 for ratio in ratios), before=mean("before") if arguments.against else "-")


@torch.no_grad()
def _draw(arguments, task):
    """The mean errors, by who made them."""
    torch.set_num_threads(1)
    model = prepare(arguments, *task)
    paths = compile_both(arguments, model.path, *flags_of(arguments))
    with torch.autocast("cuda", TYPES.get(arguments.autocast), enabled=bool(arguments.autocast)):
        theirs = mean_error(model, lambda inputs: model.module(*inputs))
    return {"torch": theirs} | {who: mean_error_of_library(model, path) for who, path in paths.items()}
