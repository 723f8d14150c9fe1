"""rill doctor, with one mistake at a time: drivers are fakes, and folders stand in for /dev, /proc and /sys.

RILL_FAKE_NAME_DIR name the folders of the fakes."""
import json
import os
import resource
import shutil
import subprocess
import unittest

from tool_test import TOOL, ToolTest

CUDA, NVRTC, HIP, RCCL, OLD_RCCL = (
    os.environ[f"RILL_FAKE_{name}_DIR"] for name in ("CUDA", "NVRTC", "HIP", "RCCL", "RCCL6")
)
OLD_HIP = os.path.join(os.path.dirname(HIP), "fake_hip6")
NOBODY, NAMELESS = 65534, 1234567
KFD = "/sys/class/kfd/kfd/topology/nodes"
VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL",
             "HSA_OVERRIDE_GFX_VERSION", "ROCM_PATH", "RILL_COMM_MPI", "OMPI_COMM_WORLD_SIZE", "HYDI_CONTROL_FD")


class DoctorTest(ToolTest):
    area = ""

    def setUp(self):
        super().setUp()
        self.variables: dict[str, str] = {}
        self.saved = {name: os.environ.pop(name) for name in VARIABLES if name in os.environ}
        self.addCleanup(os.environ.update, self.saved)
        os.chmod(self.folder, 0o755)

    def add(self, name, text=""):
        os.makedirs(os.path.dirname(self.path("root" + name)), exist_ok=True)
        os.chmod(self.write("root" + name, text.encode()), 0o666)

    def remove(self, name):
        if os.path.isdir(self.path("root" + name)):
            shutil.rmtree(self.path("root" + name))
        else:
            os.remove(self.path("root" + name))

    def look(self, area, code, **variables):
        """Returns the findings, by their checks; the text has the same."""
        variables = {"RILL_DOCTOR_ROOT": self.path("root"), **variables}
        done = self.run_tool("doctor", area, "--json", **variables)
        self.assertEqual((done.returncode, done.stderr), (code, ""), done.stdout)
        report = json.loads(done.stdout)
        text = self.run_tool("doctor", area, **variables).stdout
        for finding in report["findings"]:
            self.assertEqual(finding["area"], area)
            self.assertRegex(text, rf"(?m)^{finding['severity']} +{area} ")
            self.assertIn(finding["what"], text)
            self.assertIn(finding["command"] or "", text)
        severities = [finding["severity"] for finding in report["findings"]]
        self.assertEqual((report["failures"], report["warnings"]), (severities.count("failure"), severities.count("warning")))
        self.assertTrue(text.endswith(f"{report['failures']} failure{'s' * (report['failures'] != 1)}, "
                                      f"{report['warnings']} warning{'s' * (report['warnings'] != 1)}\n"), text)
        return {finding["check"]: finding for finding in report["findings"]}

    def fails(self, check, what, command, **variables):
        """The one failure, and nothing else."""
        self.finds(1, "failure", check, what, command, **variables)

    def warns(self, check, what, command, **variables):
        self.finds(0, "warning", check, what, command, **variables)

    def finds(self, code, severity, check, what, command, **variables):
        found = self.look(self.area, code, **{**self.variables, **variables})
        wrong = [finding["check"] for finding in found.values() if finding["severity"] != "ok"]
        self.assertEqual(wrong, [check])
        self.assertEqual(found[check]["severity"], severity)
        self.assertIn(what, found[check]["what"])
        self.assertIn(command, found[check]["command"])

    def broken_libraries(self, *names):
        for name in names:
            self.write(name, b"this is no library\n" * 10)
        return self.folder

    def needs_rill_comm(self):
        if "without rill_comm" in self.look("mpi", 0).get("engine", {"what": ""})["what"]:
            self.skipTest("rill_comm is not built")

    def as_nobody(self, file, group):
        """What is found by a user who is in no group, of a file that a group may open."""
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        os.chown(self.path("root" + file), 0, group)
        os.chmod(self.path("root" + file), 0o660)
        environment = {**os.environ, **self.variables, "RILL_DOCTOR_ROOT": self.path("root")}
        try:
            done = subprocess.run([TOOL, "doctor", self.area, "--json"], env=environment, user=NOBODY, group=NOBODY,
                                  extra_groups=[], cwd="/", capture_output=True, encoding="utf-8", check=False)
        except PermissionError:
            self.skipTest("another user cannot run the program here")
        self.assertEqual((done.returncode, done.stderr), (1, ""))
        findings = json.loads(done.stdout)["findings"]
        self.assertEqual([finding["check"] for finding in findings], ["device_file_group"])
        return findings[0]


class Cuda(DoctorTest):
    area = "cuda"

    def setUp(self):
        super().setUp()
        self.add("/sys/bus/pci/devices/0000:01:00.0/vendor", "0x10de\n")
        self.add("/sys/bus/pci/devices/0000:01:00.0/class", "0x030200\n")
        self.add("/proc/driver/nvidia/version",
                 "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC 2023\nGCC version: 12\n")
        self.add("/proc/driver/nvidia/gpus/0000:01:00.0/information")
        for name in ("nvidiactl", "nvidia-uvm", "nvidia0"):
            self.add("/dev/" + name)
        self.variables = {"LD_LIBRARY_PATH": CUDA, "RILL_FAKE_DEVICES": "1"}
        self.none = {"RILL_FAKE_DEVICES": "0"}

    def copied(self, name, link):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        shutil.copy(os.path.join(CUDA, "libcuda.so.1"), self.path(name))
        if link:
            os.symlink(os.path.basename(name), os.path.join(os.path.dirname(self.path(name)), link))
        return os.path.dirname(self.path(name))

    def test_a_machine_without_faults_is_reported_as_ok(self):
        found = self.look("cuda", 0, **self.variables)
        self.assertEqual(list(found), ["devices"])
        self.assertRegex(found["devices"]["what"], r"^1 device; driver 13\.0, /.*/libcuda\.so\.1$")

    def test_a_machine_without_gpu_is_reported_as_ok(self):
        shutil.rmtree(self.path("root"))
        found = self.look("cuda", 0, **self.variables, **{"RILL_FAKE_CUDA_DEVICES": "0"})
        self.assertEqual(found["devices"]["what"], "no NVIDIA GPU in this machine")

    def test_another_card_of_the_vendor_is_ignored(self):
        shutil.rmtree(self.path("root/proc"))
        self.add("/sys/bus/pci/devices/0000:01:00.0/class", "0x040300\n")  # sound
        self.look("cuda", 0, **{**self.variables, **self.none})

    def test_a_driver_that_is_not_loaded_is_found(self):
        shutil.rmtree(self.path("root/proc"))
        self.fails("kernel_driver", "is not loaded", "sudo modprobe nvidia", **self.none)

    def test_nouveau_is_found(self):
        shutil.rmtree(self.path("root/proc"))
        self.add("/sys/module/nouveau/refcnt")
        self.fails("nouveau", "nouveau drives the GPU", "blacklist nouveau", **self.none)

    def test_missing_device_files_are_found(self):
        for name in ("nvidiactl", "nvidia-uvm", "nvidia0"):
            self.remove("/dev/" + name)
            self.fails("device_file_missing", f"/dev/{name} is missing", "sudo nvidia-modprobe -c 0 -u", **self.none)
            self.add("/dev/" + name)

    def test_a_container_without_device_files_is_found(self):
        self.remove("/dev/nvidiactl")
        self.add("/.dockerenv")
        self.fails("device_file_missing", "it was not passed to this container", "docker run --gpus all", **self.none)

    def test_a_closed_device_file_is_found(self):
        self.remove("/dev/nvidiactl")
        self.add("/dev/nvidiactl/a folder")
        self.fails("device_file_closed", "/dev/nvidiactl cannot be opened: Is a directory", "sudo chmod a+rw /dev/nvidiactl",
                   **self.none)

    def test_the_group_of_a_device_file_is_named(self):
        self.variables |= self.none
        finding = self.as_nobody("/dev/nvidiactl", 44)
        self.assertIn("/dev/nvidiactl is for members of group ", finding["what"])
        finding = self.as_nobody("/dev/nvidiactl", NAMELESS)
        self.assertEqual(finding["command"], f"docker run --group-add {NAMELESS} ...")

    def test_a_missing_library_is_found(self):
        self.fails("library_missing", "libcuda.so.1: ", "sudo apt install libnvidia-compute-535",
                   LD_LIBRARY_PATH=self.broken_libraries("libcuda.so.1"))

    def test_a_container_without_driver_is_found(self):
        self.add("/run/.containerenv")
        self.fails("library_missing", "library is missing in this container", "NVIDIA_DRIVER_CAPABILITIES=compute,utility",
                   LD_LIBRARY_PATH=self.broken_libraries("libcuda.so.1"))

    def test_a_stub_is_found(self):
        self.fails("library_stub", "/stubs/libcuda.so.1 is a stub", "grep -v stubs", RILL_FAKE_INIT="34",
                   LD_LIBRARY_PATH=self.copied("stubs/libcuda.so.1", None))

    def test_a_library_of_another_driver_is_found(self):
        folder = self.copied("lib/libcuda.so.535.54.03", "libcuda.so.1")
        for code in ("803", "999"):
            self.fails("driver_versions", "belongs to driver 535.54.03, but the kernel module has version 535.104.05", "sudo reboot",
                       RILL_FAKE_INIT=code, LD_LIBRARY_PATH=folder)
        # The same library where it works.
        self.assertEqual(self.look("cuda", 0, RILL_FAKE_DEVICES="1", LD_LIBRARY_PATH=folder)["devices"]["severity"], "ok")

    def test_the_open_kernel_module_is_recognized(self):
        self.add("/proc/driver/nvidia/version",
                 "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  560.35.03  Release Build\n")
        self.fails("driver_versions", "the kernel module has version 560.35.03", "sudo reboot", RILL_FAKE_INIT="803",
                   LD_LIBRARY_PATH=self.copied("lib/libcuda.so.560.28.03", "libcuda.so.1"))

    def test_a_stopped_fabric_manager_is_found(self):
        self.fails("fabric_manager", "802", "sudo systemctl start nvidia-fabricmanager", RILL_FAKE_INIT="802")

    def test_a_mask_is_named(self):
        for mask in ("", "7"):
            self.fails("mask", f'CUDA_VISIBLE_DEVICES is "{mask}"', "unset CUDA_VISIBLE_DEVICES",
                       CUDA_VISIBLE_DEVICES=mask, **self.none)

    def test_mask_that_leaves_some(self):
        self.add("/proc/driver/nvidia/gpus/0000:02:00.0/information")
        found = self.look("cuda", 0, **self.variables, CUDA_VISIBLE_DEVICES="0")
        self.assertIn('1 devices of 2, because CUDA_VISIBLE_DEVICES is "0"; ', found["devices"]["what"])
        self.assertEqual(list(found), ["devices"])

    def test_a_gpu_that_the_driver_lost_is_found(self):
        self.add("/proc/driver/nvidia/gpus/0000:02:00.0/information")
        self.warns("devices_missing", "the kernel lists 2 GPUs, but the driver finds only 1", "dmesg")

    def test_other_errors_point_to_the_log(self):
        self.fails("unknown", "returned 999", "dmesg", RILL_FAKE_INIT="999")

    def test_a_device_that_cannot_be_used(self):
        self.fails("device_use", "cuda:0 exists, but cannot be used: ", "nvidia-smi",
                   RILL_FAKE_FAIL="cuDevicePrimaryCtxRetain:1+:46")
        self.fails("device_use", "other processes use its memory", "nvidia-smi", RILL_FAKE_FAIL="cuMemAlloc:1+:2")

    def test_a_compiler_newer_than_the_driver_is_found(self):
        both = f"{CUDA}:{NVRTC}"
        self.warns("compiler_version", "belongs to CUDA 13.0, but the driver to CUDA 12.4", "cuda-drivers", LD_LIBRARY_PATH=both,
                   RILL_FAKE_VERSION="12040")
        self.assertEqual(list(self.look("cuda", 0, **{**self.variables, "LD_LIBRARY_PATH": both})), ["devices"])


class Hip(DoctorTest):
    area = "hip"

    def setUp(self):
        super().setUp()
        self.add("/sys/bus/pci/devices/0000:41:00.0/vendor", "0x1002\n")
        self.add("/sys/bus/pci/devices/0000:41:00.0/class", "0x038000\n")
        self.add("/sys/module/amdgpu/refcnt")
        self.add(f"{KFD}/0/properties", "cpu_cores_count 16\nsimd_count 0\n")
        self.add(f"{KFD}/1/properties", "simd_count 80\ngfx_target_version 90010\ndrm_render_minor 128\n")
        self.add("/dev/kfd")
        self.add("/dev/dri/renderD128")
        self.variables = {"LD_LIBRARY_PATH": HIP, "RILL_FAKE_DEVICES": "1"}
        self.none = {"RILL_FAKE_DEVICES": "0"}

    def test_a_machine_without_faults_is_reported_as_ok(self):
        self.assertRegex(self.look("hip", 0, **self.variables)["devices"]["what"], r"^1 device; driver \d\.\d, /.*/libamdhip64")

    def test_a_machine_without_gpu_is_reported_as_ok(self):
        shutil.rmtree(self.path("root"))
        self.assertEqual(self.look("hip", 0, LD_LIBRARY_PATH=HIP, **self.none)["devices"]["what"], "no AMD GPU in this machine")

    def test_a_driver_that_is_not_loaded_is_found(self):
        shutil.rmtree(self.path("root/sys/class"))
        shutil.rmtree(self.path("root/sys/module"))
        self.fails("kernel_driver", "is not loaded", "sudo modprobe amdgpu", **self.none)

    def test_a_driver_without_a_list_is_found(self):
        shutil.rmtree(self.path("root/sys/class"))
        self.fails("kernel_list", "offers no GPU to ROCm", "dmesg", **self.none)

    def test_missing_device_files_are_found(self):
        for name in ("/dev/kfd", "/dev/dri/renderD128"):
            self.remove(name)
            self.fails("device_file_missing", f"{name} is missing", "dmesg", **self.none)
            self.add("/.dockerenv")
            self.fails("device_file_missing", "it was not passed to this container", "--device=/dev/kfd --device=/dev/dri",
                       **self.none)
            self.remove("/.dockerenv")
            self.add(name)

    def test_the_group_of_a_device_file_is_named(self):
        self.variables |= self.none
        finding = self.as_nobody("/dev/dri/renderD128", 44)
        self.assertIn("/dev/dri/renderD128 is for members of group ", finding["what"])
        self.assertIn("usermod -aG", finding["command"])
        self.add("/.dockerenv")
        self.assertEqual(self.as_nobody("/dev/dri/renderD128", 44)["command"], "docker run --group-add 44 ...")

    def test_a_second_gpu_without_permission_is_found(self):
        self.add(f"{KFD}/2/properties", "simd_count 80\ngfx_target_version 90010\ndrm_render_minor 129\n")
        self.fails("device_file_missing", "/dev/dri/renderD129 is missing", "dmesg")

    def test_an_empty_list_of_gpus_is_found(self):
        self.add(f"{KFD}/1/properties", "simd_count 0\n")
        self.fails("kernel_list", "the kernel lists no GPU", "dmesg", **self.none)

    def test_a_missing_runtime_is_found(self):
        self.fails("library_missing", "ROCm's runtime is missing", "hip-runtime-amd", LD_LIBRARY_PATH=self.broken_libraries(
            "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"))

    def test_masks_are_named(self):
        for variable in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
            self.fails("mask", f'{variable} is "-1", which hides all devices', f"unset {variable}", **self.none,
                       **{variable: "-1"})
        # CUDA's counts only where HIP's is empty.
        two = {"CUDA_VISIBLE_DEVICES": "-1", "HIP_VISIBLE_DEVICES": "3"}
        self.fails("mask", 'HIP_VISIBLE_DEVICES is "3", which hides all devices', "unset HIP_VISIBLE_DEVICES", **self.none, **two)
        two["HIP_VISIBLE_DEVICES"] = ""
        self.fails("mask", 'CUDA_VISIBLE_DEVICES is "-1" and HIP_VISIBLE_DEVICES is ""',
                   "unset CUDA_VISIBLE_DEVICES HIP_VISIBLE_DEVICES", **self.none, **two)

    def test_an_unsupported_gpu_is_found(self):
        self.add(f"{KFD}/1/properties", "simd_count 40\ngfx_target_version 100301\ndrm_render_minor 128\n")
        self.fails("unsupported_gpu", "the kernel lists gfx1031, and their files can be opened", "rocminfo", **self.none)

    def test_an_override_is_named(self):
        self.warns("override", 'HSA_OVERRIDE_GFX_VERSION is "10.3.0"', "unset HSA_OVERRIDE_GFX_VERSION",
                   HSA_OVERRIDE_GFX_VERSION="10.3.0")
        self.fails("override", 'HSA_OVERRIDE_GFX_VERSION is "10.3.0"', "unset HSA_OVERRIDE_GFX_VERSION", **self.none,
                   HSA_OVERRIDE_GFX_VERSION="10.3.0")

    def test_a_rocm_path_of_another_version_is_found(self):
        os.makedirs(self.path("rocm-6/lib"))
        os.makedirs(self.path("rocm-7/lib"))
        shutil.copy(os.path.join(HIP, "libamdhip64.so.7"), self.path("rocm-7/lib/libamdhip64.so.7"))
        self.variables["LD_LIBRARY_PATH"] = self.path("rocm-7/lib")
        self.warns("rocm_path", "load another version", f"export ROCM_PATH={os.path.realpath(self.path('rocm-7'))}",
                   ROCM_PATH=self.path("rocm-6"))
        self.assertEqual(list(self.look("hip", 0, **self.variables, ROCM_PATH=self.path("rocm-7"))), ["devices"])

    def test_a_missing_rccl_is_found(self):
        self.needs_rill_comm()
        self.warns("communication", "librccl.so.1", "sudo apt install rccl", RILL_FAKE_DEVICES="2",
                   LD_LIBRARY_PATH=f"{HIP}:{self.broken_libraries('librccl.so.1')}")
        found = self.look("hip", 0, RILL_FAKE_DEVICES="2", LD_LIBRARY_PATH=f"{HIP}:{RCCL}")
        self.assertEqual(list(found), ["devices"])

    def test_an_rccl_of_another_version_is_found(self):
        self.needs_rill_comm()
        self.warns("communication_version", "libamdhip64.so.6", "sudo apt install rccl",
                   LD_LIBRARY_PATH=f"{HIP}:{OLD_RCCL}:{OLD_HIP}")


class Rest(DoctorTest):
    def test_all_areas_are_examined(self):
        done = self.run_tool("doctor")
        self.assertEqual(done.stderr, "")
        self.assertRegex(done.stdout, r"(?m)^ok +cpu +\S+, \d+ processors$")
        for area in ("cuda", "hip", "mpi"):
            self.assertRegex(done.stdout, rf"(?m)^\w+ +{area} ")
        self.assertNotIn("\x1b", done.stdout)

    def test_misuse_is_refused(self):
        self.fail_with(2, 'doctor: unexpected argument "gpu"', "doctor", "cpu", "gpu")

    def mpirun(self, text):
        self.write("mpirun", f"#!/bin/sh\necho '{text}'\n".encode())
        os.chmod(self.path("mpirun"), 0o755)
        return {"PATH": self.folder + ":" + os.environ["PATH"]}

    def test_an_engine_for_another_mpi_is_found(self):
        texts = {"Open MPI": "mpirun (Open MPI) 4.1.4", "MPICH": "HYDRA build details:"}
        found = self.look("mpi", 0, **self.mpirun("something else"))
        if "engine" not in found or "without rill_comm" in found["engine"]["what"]:
            self.skipTest("there is no engine for MPI")
        own = "Open MPI" if "Open MPI" in found["engine"]["what"] else "MPICH"
        other = "MPICH" if own == "Open MPI" else "Open MPI"
        self.area, self.variables = "mpi", {}
        self.assertEqual(list(self.look("mpi", 0, **self.mpirun(texts[own]))), ["engine"])
        self.warns("engine_for_another", f"mpirun in the PATH is part of {other}",
                   "-Drill_mpi=" + {"Open MPI": "openmpi", "MPICH": "mpich"}[other], **self.mpirun(texts[other]))
        started = {"Open MPI": {"OMPI_COMM_WORLD_SIZE": "1"}, "MPICH": {"HYDI_CONTROL_FD": "5"}}[other]
        self.warns("engine_for_another", "this process was started by", "meson configure", **started,
                   **self.mpirun(texts[own]))

    def test_a_missing_engine_is_found(self):
        self.needs_rill_comm()
        self.area, self.variables = "mpi", {"RILL_COMM_MPI": "/nowhere/librill_comm_mpi.so.0"}
        self.warns("engine_missing", "/nowhere/librill_comm_mpi.so.0: cannot open", "unset RILL_COMM_MPI")

    def test_a_low_limit_of_locked_memory_is_found(self):
        limits = resource.getrlimit(resource.RLIMIT_MEMLOCK)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_MEMLOCK, limits)
        least = 8192 * 1024 if limits[0] == resource.RLIM_INFINITY else limits[0]
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (least, limits[1]))
        self.area, self.variables = "system", {}
        self.assertEqual(self.look("system", 0), {})
        self.add("/sys/class/infiniband/mlx5_0/node_type")
        command = "ulimit -l unlimited" if limits[1] == resource.RLIM_INFINITY else "/etc/security/limits.d/memlock.conf"
        self.warns("memlock", f"may lock only {least // 1024} KiB of memory, which is too little for 1 InfiniBand adapter", command)
        self.add("/.dockerenv")
        self.warns("memlock", "NCCL, RCCL and MPI", "docker run --ulimit memlock=-1")


if __name__ == "__main__":
    unittest.main()
