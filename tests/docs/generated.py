"""The parts of pages that are written by machine, between markers:

    <!-- ptc compile --help=markdown -->        what the command prints
    …
    <!-- end -->

    <!-- ptc explain PTC0301 -->        the same, as Markdown
    …
    <!-- end -->

    <!-- schema compiler/artifact/manifest.schema.json -->      the fields of a JSON Schema
    …
    <!-- end -->

`run.py --update` writes them anew.
"""
import json
import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MARKED = re.compile(r"^<!-- ((?:ptc|schema) [^\n]*) -->\n(.*?)^<!-- end -->$", re.M | re.S)


def kind_of(schema):
    """A type as a reader says it: "integer", "list of kernel", "cpu or cuda"."""
    if ref := schema.get("$ref"):
        return ref.rsplit("/", 1)[1]
    if options := schema.get("anyOf"):
        return " or ".join(map(kind_of, options))
    if values := schema.get("enum"):
        return ", ".join(f"`{value}`" for value in values)
    if schema.get("type") == "array":
        return "list of " + kind_of(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        return "object of " + kind_of(schema["additionalProperties"])
    return schema.get("type", "any")


def field_tables(path):
    """One table for the document and one for each object that its definitions name."""
    root = json.loads((ROOT / path).read_text())
    scalars = {name: schema["type"] for name, schema in root.get("$defs", {}).items() if "properties" not in schema}
    tables = [("", root), *((name, d) for name, d in root.get("$defs", {}).items() if "properties" in d)]
    lines = []
    for name, schema in tables:
        lines += [*([""] if name else []), f"| {name or 'field'} | type | |", "|---|---|---|"]
        for key, field in {**schema["properties"], **schema.get("patternProperties", {})}.items():
            kind = re.sub(r"\w+", lambda word: scalars.get(word[0], word[0]), kind_of(field)).replace("|", "\\|")
            optional = "" if key in schema["required"] else ", optional"
            lines.append(f"| `{key}` | {kind}{optional} | {field['description']} |".replace("  ", " "))
    return "\n".join(lines) + "\n"


def explained(printed):
    """A diagnostic's sentence, class, meaning and remedy."""
    first, sentence, meaning, remedy = (line.strip() for line in printed.splitlines()[:4])
    kind = first.split("): ", 1)[1]
    return f"> {sentence}\n\n{kind[0].upper()}{kind[1:]}. {meaning} **What to do:** {remedy.removeprefix('help: ')}\n"


def output_of(command, build):
    """What a marker asks for; the commands are of this repository's own pages."""
    if command.startswith("schema "):
        return field_tables(command.split()[1])
    path = os.pathsep.join([str(build / "bin"), os.environ["PATH"]])
    printed = subprocess.run(command, shell=True, check=True, capture_output=True, text=True,
                             env={**os.environ, "PATH": path}).stdout
    return explained(printed) if re.match(r"ptc explain PTC\d", command) else printed


def check(page, build, update):
    """A count of the page's generated parts and the stale ones; None if it has none."""
    text, stale = page.read_text(), []
    if not MARKED.search(text):
        return None

    def current(match):
        printed = output_of(match[1], build)
        if printed != match[2] and not update:
            stale.append(f"{page}: stale: what `{match[1]}` prints (tests/docs/run.py --update)")
        return f"<!-- {match[1]} -->\n{printed}<!-- end -->"

    fresh = MARKED.sub(current, text)
    if update and fresh != text:
        page.write_text(fresh)
    return len(MARKED.findall(text)), stale


def anchors_of(page):
    """The names that a forge gives to a page's headings."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(pages):
    """Links to files of the repository that are not there, or to headings that a page does not have."""
    for page in pages:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            linked = (page.parent / path).resolve() if path else page
            if not linked.exists():
                yield f"{page}: no such file: {target}"
            elif anchor and linked.suffix == ".md" and anchor not in anchors_of(linked):
                yield f"{page}: no such heading: {target}"


def unexplained(root, build):
    """Every diagnostic has a section with an example that shows it, or says that there is none."""
    text = (root / "cli" / "docs" / "diagnostics.md").read_text()
    sections = {code: body for code, body in re.findall(r"^### (PTC\d{4}) [^\n]*\n(.*?)(?=^##|\Z)", text, re.M | re.S)}
    for code in re.findall(r"^(PTC\d{4})  ", output_of("ptc explain codes", build), re.M):
        body = sections.pop(code, None)
        if body is None or f"<!-- ptc explain {code} -->" not in body:
            yield f"cli/docs/diagnostics.md: no section about {code}"
        elif f"[{code}]:" not in body and "No input is known" not in body:
            yield f"cli/docs/diagnostics.md: no example shows {code}"
    for code in sections:
        yield f"cli/docs/diagnostics.md: there is no diagnostic {code}"


def missing_pages(root, build):
    """Every verb has a page with its flags, and the index links to it."""
    docs = root / "cli" / "docs"
    index = (docs / "README.md").read_text()
    for verb in re.findall(r"^  (\w+)  +", output_of("ptc --help", build), re.M):
        page = docs / f"{verb}.md"
        if not page.is_file():
            yield f"cli/docs/{verb}.md is missing: every verb has a page"
        elif f"<!-- ptc {verb} --help=markdown -->" not in page.read_text():
            yield f"cli/docs/{verb}.md lacks the table of flags: <!-- ptc {verb} --help=markdown -->"
        if f"({verb}.md)" not in index:
            yield f"cli/docs/README.md does not link to {verb}.md"
