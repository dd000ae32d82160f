"""Checks that FILE is a trace in Chrome's format of N processes, and lists the first one's rows and launches."""
import json
import sys

events = json.load(open(sys.argv[1]))["traceEvents"]
processes = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
assert sorted(processes) == list(range(1, int(sys.argv[2]) + 1)), processes
spans = [e for e in events if e["ph"] == "X"]
assert len(spans) + len(processes) + len(threads) == len(events)
for span in spans:
    assert span["ts"] >= 0 and span["dur"] >= 0 and (span["pid"], span["tid"]) in threads, span
    assert span["cat"] == "run" or {"kernel", "nodes", "launch", "iterations"} <= span["args"].keys(), span
for pid, name in processes.items():
    own = [s for s in spans if s["pid"] == pid]
    run, = [s for s in own if s["cat"] == "run"]
    launches = {s["args"]["launch"]: s for s in own if s["cat"] == "launch"}
    assert sorted(launches) == list(range(len(launches))) and launches
    near = 0.0015  # times are told to the nanosecond
    for span in own:
        whole = launches[span["args"]["launch"]] if span["cat"] == "piece" else run
        assert whole["ts"] <= span["ts"] + near and span["ts"] + span["dur"] <= whole["ts"] + whole["dur"] + near, span
    if pid == 1:
        print(f"process 1: {name}")
        print(*(f"thread {name}" for (p, _), name in threads.items() if p == 1), sep="\n")
        print(*(f"launch {s['name']}: {s['args']['kernel']}" for s in launches.values()), sep="\n")
