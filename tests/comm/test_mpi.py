"""Programs that use MPI themselves, failing jobs, and jobs with missing requirements.

usage: test_mpi.py LAUNCHER PROGRAM OTHER_ENGINE RANDOM, in the environment of one MPI; OTHER_ENGINE is the engine of
another implementation, or "", and RANDOM the program of random.c.
"""
import collections
import os
import random
import subprocess
import sys
import tempfile
import unittest

launcher, other_engine = sys.argv[1], sys.argv[3]
program = os.path.abspath(sys.argv[2])
random_program = os.path.abspath(sys.argv[4])


def run(case, ranks=4, **variables):
    """Runs a case; returns the exit status, and each kind of line with what the ranks said."""
    done = subprocess.run([launcher, "-n", str(ranks), program, case], env={**os.environ, **variables}, text=True,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200,
                          check=False)
    said = collections.defaultdict(list)
    for line in done.stdout.splitlines():
        kind, _, text = line.partition(": ")
        said[kind].append(text)
    return done.returncode, said, done.stdout


class Mpi(unittest.TestCase):
    def case(self, name, expected, ranks=4, fails=False, **variables):
        """`expected`: for each kind of line, how many ranks print it and what it contains."""
        status, said, output = run(name, ranks, **variables)
        with self.subTest(name=name, output=output):
            self.assertNotRegex(output, r"\) failed: ")
            for kind, (count, pattern) in expected.items():
                self.assertEqual(len(said[kind]), count, kind)
                for text in said[kind]:
                    self.assertRegex(text, pattern)
            if not fails:
                self.assertEqual(status, 0)
            return status

    def test_the_communicator_of_the_program_can_be_used(self):
        answers = {
            "half": (4, "^right$"),
            "another": (4, '"another MPI".*INVALID_ARGUMENT'),
            "null": (4, "MPI_COMM_NULL.*INVALID_ARGUMENT"),
            "after MPI_Finalize": (4, "has been finalized.*UNSUPPORTED"),
        }
        self.case("own_communicator", answers)

    def test_a_low_thread_level_is_refused(self):
        self.case("too_few_threads", {"level": (4, "MPI_THREAD_MULTIPLE.*MPI_Init_thread.*UNSUPPORTED")})

    def test_mismatched_ids_and_ranks_are_refused(self):
        self.case("other_ids", {"ids": (4, "same id.*INVALID_ARGUMENT"), "ranks": (4, "5 ranks.*MPI has 4.*UNSUPPORTED"),
                                "same rank": (4, "same rank.*INVALID_ARGUMENT")})

    def test_a_stalled_rank_times_out(self):
        late = r"barrier of rank [023] of 4 \(operation 1\) has not finished within 2000000000 ns.*TIMEOUT"
        self.case("stall", {"stream": (3, late), "comm": (3, "^rill_comm_barrier: job: " + late), "later": (3, "^not run$")})

    def test_an_injected_late_rank_times_out(self):
        late = r"barrier of rank [023] of 4 \(operation 2\) has not finished within 2000000000 ns.*TIMEOUT"
        self.case("injected", {"first": (4, "^right$"), "stream": (3, late), "comm": (3, late), "late": (1, "passed|TIMEOUT")},
                  RILL_FAULT="comm_late@1:2=6s")

    def test_an_injected_death_ends_the_job(self):
        status, said, output = run("injected", RILL_FAULT="comm_die@1:2")
        with self.subTest(output=output):
            self.assertNotEqual(status, 0)
            self.assertLessEqual(set(said["first"]), {"right"})  # mpirun may lose output of ranks that it kills
            self.assertIn("rill: RILL_FAULT: comm_die: rank 1 of 4 is killed at its barrier", output)
            self.assertEqual(said["late"], [])

    def test_a_death_in_a_random_program_ends_all_ranks(self):
        for seed in range(4):
            draw = random.Random(seed)
            ranks = draw.randint(2, 5)
            rule = f"comm_die@{draw.randrange(ranks)}:{draw.randint(1, 400)}"
            done = subprocess.run([launcher, "-n", str(ranks), random_program], env={**os.environ, "RILL_FAULT": rule},
                                  text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=200, check=False)
            with self.subTest(ranks=ranks, rule=rule, output=done.stdout):
                self.assertNotEqual(done.returncode, 0)
                self.assertIn("is killed at its", done.stdout)
                self.assertNotIn("OK ] random_programs", done.stdout)

    def test_an_injected_count_is_reported_as_a_mismatch(self):
        other = r"all_reduce of rank \d of 4 \(operation 1\) of (4 elements.* not match.* of 1 element |1 element .* not match.* of 4 elements).*INVALID_ARGUMENT"
        for checks in "comm", "":
            self.case("injected_count", {"count": (4, other), "next": (4, "^right$")}, RILL_CHECK=checks,
                      RILL_FAULT="comm_count@2:1=-3")

    def test_earlier_failed_work_is_reported(self):
        status, said, output = run("fail_before")
        with self.subTest(output=output):
            self.assertEqual(status, 0)
            # The one whose stream failed knows why, and tells the others, who wait.
            self.assertEqual(len([t for t in said["comm"] if "the work before it failed" in t]), 4)

    def test_messages_that_do_not_fit(self):
        for case, received, sent in (("receive_less", "131072 elements of int32", "262144 elements of int32"),
                                     ("receive_more", "3 elements of int32", "2 elements of int32"),
                                     ("receive_of_nothing", "3 elements of int32", "0 elements of int32"),
                                     ("receive_another_type", "2 elements of int32", "2 elements of float")):
            refused = rf"receive of rank 1 of 4 from rank 0 \(operation 1\) of {received} does not match what rank 0 sent: {sent}"
            self.case(case, {"stream": (1, refused), "comm": (1, refused + ".*INVALID_ARGUMENT"), "written": (0, "")})

    def test_a_message_matches_no_collective_operation(self):
        for case, message in (("send_for_all_reduce", "send of rank 1 of 4 to rank 2"),
                              ("receive_for_all_reduce", "receive of rank 1 of 4 from rank 2")):
            says = message + r" \(operation 1\) does not match all_reduce of rank 2 of 4 \(operation 1\)"
            for checks in "comm", "":
                self.case(case, {"comm": (4, says + ".*INVALID_ARGUMENT"), "next": (4, "^right$")}, RILL_CHECK=checks)

    def test_an_empty_message_is_compared(self):
        says = r"receive of rank 1 of 4 from rank 0 \(operation 1\) of 4 elements.* sent: 0 elements"
        self.case("empty_message", {"comm": (4, says)}, RILL_CHECK="comm")

    def test_another_count_of_a_reduction_is_refused(self):
        for case, count in ("reduce_less", 131072), ("reduce_more", 524288), ("reduce_nothing", 0):
            other = (rf"all_reduce of rank 1 of 4 \(operation 1\) of {count} elements? of int32, sum does not match "
                     r"all_reduce of rank 0 of 4 \(operation 1\) of 262144 elements.*INVALID_ARGUMENT")
            self.case(case, {"stream": (4, other), "comm": (4, other), "written": (0, ""), "goes on": (4, "^yes$")})

    def test_dead_rank_ends_the_job(self):
        status = self.case("die", {"barrier": (0, "")}, fails=True)
        self.assertNotEqual(status, 0)

    def test_abort_ends_operations_in_progress(self):
        ended = "rill_comm_abort ended the communicator"
        self.case("abort", {"stream": (3, ended), "comm": (3, ended)})

    def test_no_worker_waits(self):
        self.case("wait_on_many_streams", {"threads": (4, "^few$"), "received": (4, "^right$")})

    def test_many_communicators_can_be_created(self):
        self.case("many_communicators", {"many": (1, "^right$")}, ranks=1)

    def test_a_missing_engine_is_reported(self):
        with tempfile.TemporaryDirectory() as folder:
            library = os.path.join(folder, "librill_comm_mpi.so.0")
            with open(library, "wb"):
                pass
            status, _, output = run("stall", 1, RILL_COMM_MPI=library)
        self.assertNotEqual(status, 0)
        self.assertRegex(output, r"librill_comm_mpi\.so\.0: file too short; install libopenmpi-dev or libmpich-dev.*UNSUPPORTED")

    def test_an_engine_for_another_mpi_is_refused(self):
        if other_engine == "":
            self.skipTest("one MPI is here")
        status, _, output = run("own_communicator", 1, RILL_COMM_MPI=other_engine)
        self.assertNotEqual(status, 0)
        self.assertRegex(output, r"this process uses .*, but librill_comm_mpi was built for.*UNSUPPORTED")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[5:])
