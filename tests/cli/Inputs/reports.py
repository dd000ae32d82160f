"""reports.py COMMAND...: the reports of a gate that fails, in each form, are what their readers take."""
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree


def report(form):
    done = subprocess.run([*sys.argv[1:], "--once", f"--format={form}"], capture_output=True, text=True)
    assert done.returncode == 1, done
    return done.stdout


(check,) = json.loads(report("json"))["checks"]
assert not check["passed"] and check["regressions"] >= 2 and check["improvements"] + check["waived"] == 0
fusion = next(finding for finding in check["findings"] if finding["finding"] == "fusion")
assert fusion["nodes"] == ["fc2", "softmax"] and fusion["before"] == "1" and fusion["reason"]

suites = ElementTree.fromstring(report("junit"))
(case,) = suites.iter("testcase")
assert suites.get("failures") == "1" and "fusion lost" in case.find("failure").text

log = json.loads(report("sarif"))
assert log["version"] == "2.1.0"
(run,) = log["runs"]
rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
for result in run["results"]:
    (location,) = result["locations"]
    assert result["ruleId"] in rules and result["level"] in ("error", "note") and result["message"]["text"]
    assert location["physicalLocation"]["artifactLocation"]["uri"] == "now/mlp.json"
    assert location["physicalLocation"]["region"]["startLine"] >= 1

lines = report("github").splitlines()
assert len(lines) == len(run["results"])
assert all(re.fullmatch(r"::(error|notice) file=now/mlp\.json,line=\d+,title=[^:,]*(%3A[^:,]*)*::.+", line) for line in lines), lines

issues = json.loads(report("gitlab"))
assert len({issue["fingerprint"] for issue in issues}) == len(issues)
for issue in issues:
    assert issue["severity"] in ("info", "minor", "major", "critical", "blocker") and issue["check_name"] and issue["description"]
    assert issue["location"]["path"] == "now/mlp.json" and issue["location"]["lines"]["begin"] >= 1
