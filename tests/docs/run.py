"""Checks the documentation: every example of every Markdown page, the tables that are generated, the schemas.

    python tests/docs/run.py                    all checks
    python tests/docs/run.py PAGE.md...         the examples of these pages
    python tests/docs/run.py --update [PAGE.md...]   writes generated tables and real output into the pages
"""
import argparse
import concurrent.futures
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import examples
import generated
import schemas

ROOT = Path(__file__).resolve().parent.parent.parent
LLVM = "/usr/lib/llvm-22/bin"


def markdown():
    out = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT,
                         check=True, capture_output=True, text=True).stdout
    return sorted(ROOT / name for name in set(out.split("\0")) if name and (ROOT / name).is_file())


def environment(build):
    python = Path(sys.executable).parent  # of the environment, where this runs in one
    path = os.pathsep.join([str(build / "bin"), str(python), LLVM, os.environ["PATH"]])
    return {**os.environ, "PATH": path, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(ROOT / "runtime" / "python")}


def check_page(page, models, build, update):
    """The problems of a page's examples; None if it has none to run."""
    steps = examples.parse(page.read_text())
    if not any(isinstance(step, examples.Command) for step in steps):
        return None
    with tempfile.TemporaryDirectory(prefix="ptc-docs-") as name:
        folder = Path(name) / "example"
        shutil.copytree(models, folder)
        examples.run(steps, folder, environment(build))
    if update:
        page.write_text(examples.updated(page.read_text(), steps))
    return list(examples.problems(page.relative_to(ROOT), steps))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="*", type=Path, metavar="PAGE.md")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--models", action="store_true", help="nothing more than without it")
    parser.add_argument("--update", action="store_true", help="write what is generated into the pages")
    parser.add_argument("-j", type=int, default=os.cpu_count(), dest="jobs")
    args = parser.parse_args()
    build = args.build.resolve()
    pages = [page.resolve() for page in args.pages] or markdown()
    results = []  # name, problems or None

    for page in pages:
        if tables := generated.check(page, build, args.update):
            results.append((f"tables of {page.relative_to(ROOT)}", tables[1]))
    with tempfile.TemporaryDirectory(prefix="ptc-docs-") as name, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        models = Path(name) / "models"
        subprocess.run([sys.executable, ROOT / "tests/cli/Inputs/models.py", models], check=True)
        found = pool.map(lambda page: check_page(page, models, build, args.update), pages)
        results += [(page.relative_to(ROOT), problems) for page, problems in zip(pages, found)]
        if not args.pages:
            results.append(("JSON and its schemas", schemas.check(models, build)))
    if not args.pages:
        results.append(("the index", list(generated.missing_pages(ROOT, build))))
        results.append(("links", list(generated.broken_links(pages))))
        results.append(("the list of diagnostics", list(generated.unexplained(ROOT, build))))

    checked = [(name, problems) for name, problems in results if problems is not None]
    for name, problems in checked:
        print(f"{'failed' if problems else 'ok'}: {name}")
        for problem in problems:
            print(problem)
    failed = sum(1 for _, problems in checked if problems)
    print(f"{len(checked) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
