"""rill trace, on a program that makes a mistake (traced.c) and on timelines that are made up.

RILL_TRACED and RILL_LIMITS name the programs; RILL_FAKE_CUDA_DIR the folder of a stand-in for CUDA; RILL_INJECTION the
library of a profiler, and RILL_RANGES the folder of libraries with ranges."""
import fcntl
import json
import os
import re
import subprocess
import unittest

from timeline_rules import broken_rules
from tool_test import ToolTest

PROGRAM, CUDA = os.environ["RILL_TRACED"], os.environ["RILL_FAKE_CUDA_DIR"]
LIMITS, RANGES = os.environ["RILL_LIMITS"], os.environ["RILL_RANGES"]
ROUNDS = 20
LIMITS_SHOWN = {
    "pageable": "copies of .* used pageable host memory", "one stream": "all copies and kernels were on one stream",
    "in turn": "waited for each other in turn", "long host call": "host calls took", "null stream": "null stream",
    "slow launches": "idle for .* until the next one was launched",
}


def bar(kind, name, track, begin, time, **args):
    return {"ph": "X", "cat": kind, "name": name, "pid": 2000, "tid": track, "ts": begin, "dur": time, "args": args}


class Trace(ToolTest):
    def trace(self, mistake, code=0, **variables):
        done = self.run_tool("trace", "-o", "t.json", "--svg", "t.svg", "--summary", "--", PROGRAM, mistake, **variables)
        self.assertEqual(done.returncode, code, done.stderr)
        return done.stdout

    def events(self):
        return json.loads(self.read("t.json"))

    def summary_of(self, *events):
        self.write("t.json", json.dumps(events).encode())
        return self.succeed("trace", "-o", "t.json", "--summary")

    def check_file(self, device):
        """What holds of every timeline."""
        events = self.events()
        processes = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
        self.assertEqual(sorted(processes.values()), sorted([device, "host"]))
        self.assertEqual(broken_rules(events), [])
        return events

    def check_program(self, device, **variables):
        summary = self.trace("none", **variables)
        events = self.check_file(device)
        names = [e["name"] for e in events if e["ph"] == "X" and e["cat"] == "copy"]
        self.assertEqual(names, ["copy host to device"] * ROUNDS)
        self.assertEqual(sum(e["ph"] == "X" and e["cat"] == "fill" for e in events), ROUNDS)
        self.assertEqual([e["args"]["bytes"] for e in events if e["ph"] == "C"][-1], 0)
        self.assertEqual([e["name"] for e in events if e["ph"] == "B"], ["rounds"])
        self.assertEqual(sum(e["ph"] == "f" for e in events), ROUNDS)
        self.assertEqual(events[-1]["args"], {"dropped": 0, "unfinished": 0})
        self.assertIn("2 streams", summary)
        self.assertIn("copy host to device", summary)
        self.assertIn("rill_device_synchronize", summary)
        self.assertNotIn("pageable", summary)
        drawing = self.read("t.svg").decode()
        self.assertTrue(drawing.startswith("<svg "))
        self.assertEqual(drawing.count("<rect"), sum(e["ph"] in "XB" for e in events))
        peak = max(e["args"]["bytes"] for e in events if e["ph"] == "C")
        self.assertEqual((drawing.count("<polygon"), peak), (1, 2 << 20))
        self.assertIn("memory in use, at most 2.0 MiB", drawing)
        self.check_memory_of(drawing)

    def check_memory_of(self, drawing):
        """The area begins and ends at its lower edge: the program has freed everything."""
        (points,) = re.findall('<polygon points="([^"]*)"', drawing)
        corners = [tuple(map(float, corner.split(","))) for corner in points.split()]
        self.assertEqual([x for x, _ in corners], sorted(x for x, _ in corners))
        heights = [y for _, y in corners]
        self.assertEqual((heights[0], heights[-2]), (max(heights), max(heights)))
        self.assertLess(min(heights), max(heights))

    def test_a_program_on_the_cpu_is_traced(self):
        self.check_program("cpu", RILL_DEVICE="cpu")

    def test_a_program_on_cuda_is_traced(self):
        self.check_program("cuda:0", RILL_DEVICE="cuda:0", LD_LIBRARY_PATH=CUDA)

    def test_bars_are_inside_the_notes_that_contain_them(self):
        for device, library in (("cpu", ""), ("cuda:0", CUDA)):
            self.trace("notes", RILL_DEVICE=device, LD_LIBRARY_PATH=library)
            events = self.check_file(device)
            groups = [e for e in events if e["ph"] == "X" and e["name"] == "group"]
            inside = [e["name"] for e in events if e["ph"] == "X" and e["pid"] and any(
                g is not e and g["tid"] == e["tid"] and g["ts"] <= e["ts"] < g["ts"] + g["dur"] for g in groups)]
            self.assertEqual(inside, ["part", "copy host to device", "fill"] * 9)
            self.assertEqual({g["args"]["group"] for g in groups}, {"\u00e9" * 43})  # whole characters in 87 bytes
            self.assertEqual([e["name"] for e in events if e["ph"] == "B"], ["\u00e9" * 63, "rounds"])

    def test_a_device_with_memory_alone_has_a_name(self):
        self.trace("only memory", RILL_DEVICE="cpu")
        self.check_file("cpu")

    def test_only_one_process_writes_a_file(self):
        """A program may start others, which inherit the path."""
        path = self.write("t.json", b"[\n")
        with open(path, encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            done = subprocess.run([PROGRAM, "none"], env=dict(os.environ, RILL_DEVICE="cpu", RILL_TIMELINE=path),
                                  capture_output=True, encoding="utf-8", check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, "RILL_TIMELINE: .*t.json.*another process is writing it; use a different path")
        self.assertEqual(self.read("t.json"), b"[\n")

    def test_pageable_copies_are_named(self):
        text = self.trace("pageable", RILL_DEVICE="cuda:0", LD_LIBRARY_PATH=CUDA)
        self.assertIn(f"{ROUNDS} copies of {ROUNDS}.0 MiB used pageable host memory", text)

    def test_a_long_host_call_is_named(self):
        self.assertRegex(self.trace("long host call", RILL_DEVICE="cpu"), "host calls took .* the longest")

    def test_the_exit_code_is_passed_on(self):
        self.trace("exit code", 7, RILL_DEVICE="cpu")

    def test_crash_leaves_a_file(self):
        self.trace("crash", 134, RILL_DEVICE="cpu")
        self.assertFalse(self.read("t.json").rstrip().endswith(b"]"))
        self.assertGreater(self.read("t.json").count(b'"cat":"fill"'), 5)
        text = self.read("t.json").decode()
        events = json.loads(text[: text.rindex("\n{")].rstrip(",\n") + "]")
        self.assertEqual(broken_rules(events), [])

    def test_ranges_reach_a_profiler(self):
        for path, said in ((os.environ["RILL_INJECTION"], "push rounds\npop\n"), ("/nowhere/injection.so", ""), ("", "")):
            done = self.run_tool("trace", "-o", "t.json", "--", PROGRAM, "none", RILL_DEVICE="cpu", NVTX_INJECTION64_PATH=path)
            self.assertEqual((done.returncode, done.stderr), (0, said))

    def test_ranges_reach_a_library(self):
        """NVTX before version 3 and ROCTX, which the program has loaded; NVTX then does not come a second time."""
        said = "push rounds\npop\n"
        for name, injected in (("nvtx", ""), ("nvtx", os.environ["RILL_INJECTION"]), ("roctx", ""), ("rocprofiler", "")):
            with self.subTest(name=name, injected=injected):
                done = self.run_tool("trace", "-o", "t.json", "--", PROGRAM, "none", RILL_DEVICE="cpu",
                                     LD_PRELOAD=os.path.join(RANGES, f"fake_{name}.so"), NVTX_INJECTION64_PATH=injected)
                self.assertEqual((done.returncode, done.stderr), (0, said))

    def test_labels_reach_a_library(self):
        done = self.run_tool("trace", "-o", "t.json", "--", LIMITS, "one stream", RILL_DEVICE="cpu",
                             LD_PRELOAD=os.path.join(RANGES, "fake_roctx.so"))
        self.assertEqual((done.returncode, done.stderr), (0, "push step\npop\n" * 10))

    def limits_of(self, program, **variables):
        """The names of all limits in the summary of a program."""
        text = self.succeed("trace", "-o", "t.json", "--summary", "--", LIMITS, program, **variables)
        lines = text.partition("why not faster:\n")[2].splitlines()
        return [name for line in lines for name, shown in LIMITS_SHOWN.items() if re.search(shown, line)] + [
            line for line in lines if not line.startswith("- ")
        ]

    def test_limits_of_programs_are_found(self):
        """Each limit is found in a program that has it, and not in one that does without."""
        cpu, cuda = {"RILL_DEVICE": "cpu", "RILL_CPU_WORKERS": "2"}, {"RILL_DEVICE": "cuda:0", "LD_LIBRARY_PATH": CUDA}
        for limit in LIMITS_SHOWN:
            variables = cuda if limit in ("pageable", "null stream") else cpu
            with self.subTest(limit=limit):
                self.assertEqual(self.limits_of(limit, **variables), [limit])
                self.assertEqual(self.limits_of("not " + limit, **variables), [])

    def test_rules_of_viewers_are_checked(self):
        """Each timeline breaks one rule; Perfetto's trace processor drops, moves or turns something in each."""
        names = [{"ph": "M", "pid": 2000, "tid": tid, "name": name, "args": {"name": "?"}}
                 for tid, name in ((0, "process_name"), (1, "thread_name"), (2, "thread_name"))]

        def arrow(end, track, at, number=1):
            return {"ph": end, "pid": 2000, "tid": track, "name": "event", "id": number, "ts": at}

        a, b, after = bar("fill", "a", 1, 5, 5), bar("wait", "b", 2, 0, 10), bar("fill", "after", 2, 10, 5)
        good = [a, b, after, arrow("s", 1, 9), arrow("f", 2, 9.5)]
        self.assertEqual(broken_rules(names + good), [])
        for rule, events in (
            ("has no length", [bar("fill", "a", 1, 5, 0)]),
            ("overlaps .* in part", [a, bar("fill", "c", 1, 8, 5)]),
            ("is inside", [a, bar("fill", "c", 1, 6, 2)]),
            ("starts twice", [*good, arrow("s", 1, 9)]),
            ("starts outside of all bars", [a, b, after, arrow("s", 1, 4), arrow("f", 2, 9.5)]),
            ("but starts at 9000", [a, b, after, arrow("s", 1, 9), arrow("f", 2, 9)]),
            ("but starts at None", [a, b, after, arrow("f", 2, 9)]),
            ("may begin before the arrow", [a, b, after, arrow("s", 1, 9), dict(arrow("f", 2, 9.5), bp="e")]),
            ("process 7 has no name", [dict(a, pid=7, tid=0)]),
            ("without events", None),
        ):
            with self.subTest(rule=rule):
                self.assertRegex(" ".join(broken_rules(names + events if events else [])), rule)

    def test_bad_use_is_refused(self):
        self.fail_with(2, "a program is missing", "trace")
        self.fail_with(1, "no-such-program", "trace", "--", "./no-such-program")
        self.fail_with(1, "wrote no timeline.*status 0", "trace", "--", "/bin/true")
        self.fail_with(1, "none.json", "trace", "-o", "none.json", "--summary")
        self.write("bad.json", b'[\n{"ph":"X"')
        self.assertEqual(self.run_tool("trace", "-o", "bad.json", "--summary").returncode, 0)  # a file cut at once
        self.write("bad.json", b'{"a": 1}')
        self.fail_with(1, "bad.json is not a rill timeline", "trace", "-o", "bad.json", "--summary")

    def check_reason(self, with_it, without_it, text):
        """The summary of a timeline has this reason alone, and that of a timeline that barely differs has none."""
        self.assertEqual(self.summary_of(*with_it).partition("why not faster:\n")[2], f"- {text}\n")
        self.assertNotIn("why not faster", self.summary_of(*without_it))

    def test_pageable_memory_is_a_limit(self):
        def copies(pageable):
            return [bar("copy", "copy host to device", 1, 100 * i, 90, bytes=1 << 20, pageable=pageable and i < 2) for i in range(3)]
        self.check_reason(copies(True), copies(False),
                          "2 copies of 2.0 MiB used pageable host memory, which the driver copies through pinned memory: allocate it "
                          "with rill_alloc and RILL_MEMORY_PINNED, or register it with rill_host_register")

    def test_one_stream_is_a_limit(self):
        def work(kernel_track):
            return bar("copy", "copy host to device", 1, 0, 100, bytes=8), bar("kernel", "k", kernel_track, 100, 100)
        self.assertIn("both at once for 0.0 us (0 % of the shorter)", self.summary_of(*work(1)))
        self.check_reason(work(1), work(2), "all copies and kernels were on one stream, which runs them one after another: use a stream "
                                            "for each direction of copies")

    def test_streams_that_wait_in_turn_are_a_limit(self):
        def rounds(waits):
            """Ten kernels need at least three turns to be reported."""
            events, arrows = [], []
            for i in range(10):
                begin = 200 * i
                events += [bar("copy", "copy host to device", 1, begin, 100, bytes=8), bar("kernel", "k", 2, begin + 100, 100)]
                for at, source, target in ((begin + 99, 1, 2), (begin + 199, 2, 1)):
                    flow = {"pid": 2000, "name": "event", "id": at}
                    arrows += [dict(flow, ph="s", tid=source, ts=at), dict(flow, ph="f", tid=target, ts=at + 1)]
            return events + arrows[:2 * waits]
        self.assertIn("in turn, 3 times", self.summary_of(*rounds(4)))
        self.check_reason(rounds(20), rounds(3),
                          "the streams waited for each other in turn, 19 times: split the work into pieces with two or more buffers, so "
                          "that one piece is copied while another is computed")

    def test_long_host_calls_are_a_limit(self):
        def call(time):
            return bar("fill", "fill", 1, 0, 1000), bar("host call", "store", 1, 1000, time / 2), bar("host call", "store", 1, 2000, time / 2)
        self.check_reason(call(54), call(52), "host calls took 54.0 us, the longest 27.0 us (\"store\"): their streams wait meanwhile; move "
                                              "long work to a thread of your own")

    def test_the_null_stream_is_a_limit(self):
        def kernel(null):
            name = {"ph": "M", "pid": 2000, "tid": 1, "name": "thread_name", "args": {"name": "stream \"all\""}}
            return name, bar("kernel", "k", 1, 0, 100, **({"null_stream": True} if null else {}))
        self.check_reason(kernel(True), kernel(False),
                          "work went to the driver's null stream (stream \"all\"), which waits for all blocking streams and makes them wait: "
                          "use streams of your own, or create them without .blocking")

    def test_slow_launches_are_a_limit(self):
        """The time until the next submission counts, not the time from there to its begin."""
        def launches(time):
            return [bar("kernel", "k", 1, 20 * i, time, submitted=20 * i - 1) for i in range(50)]
        self.check_reason(launches(5), launches(10),
                          "kernels took 250.0 us, but their streams were idle for 686.0 us until the next one was launched: capture them "
                          "in a graph, or give each kernel more work")

    def test_overlap_is_measured(self):
        text = self.summary_of(bar("copy", "copy host to device", 1, 0, 100, bytes=8), bar("kernel", "k", 2, 50, 200))
        self.assertIn("both at once for 50.0 us (50 % of the shorter)", text)
        self.assertNotIn("why not faster", text)


if __name__ == "__main__":
    unittest.main()
