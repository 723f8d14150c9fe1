"""rill info --topology, on machines that are made up: fake drivers, and folders in place of /sys.

RILL_FAKE_CUDA_DIR, RILL_FAKE_HIP_DIR and RILL_FAKE_NVML_DIR name the folders of the fakes."""
import os
import unittest

from tool_test import ToolTest

CUDA, HIP, NVML = (os.environ[f"RILL_FAKE_{name}_DIR"] for name in ("CUDA", "HIP", "NVML"))
FIRST, SECOND = "0000:01:00.0", "0000:02:00.0"


class Topology(ToolTest):
    def machine(self, *paths, numa=(0, 0), **variables):
        """Devices at paths below /sys/devices; returns each row's cells by the table's heading and the row's name."""
        os.makedirs(self.path("bus/pci/devices"), exist_ok=True)
        for path, node in zip(paths, numa):
            folder = self.path("devices/" + path)
            os.makedirs(folder)
            for name, text in (("numa_node", node), ("local_cpulist", "0-7"), ("current_link_speed", "32.0 GT/s PCIe"),
                               ("current_link_width", 16)):
                self.write(os.path.join(folder, name), f"{text}\n".encode())
            os.symlink(folder, self.path("bus/pci/devices/" + os.path.basename(path)))
        text = self.succeed("info", "--topology", RILL_SYSFS=self.folder, RILL_FAKE_DEVICES="2", **variables)
        tables = {}
        for block in text.split("\n\n")[:3]:
            heading, *rows = [line.split() for line in block.splitlines()]
            tables[heading[0]] = {row[0]: row[1:] for row in rows}
        return tables

    def link(self, *paths, **options):
        return self.machine(*paths, LD_LIBRARY_PATH=CUDA, **options)["link"]["cuda:0"][1]

    def test_one_bridge_is_pix(self):
        up = "pci0000:00/0000:00:01.0/0000:10:00.0"
        self.assertEqual(self.link(f"{up}/0000:11:00.0/{FIRST}", f"{up}/0000:11:01.0/{SECOND}"), "PIX")

    def test_several_bridges_are_pxb(self):
        up = "pci0000:00/0000:00:01.0/0000:10:00.0"
        self.assertEqual(self.link(f"{up}/0000:11:00.0/0000:12:00.0/0000:13:00.0/{FIRST}", f"{up}/0000:11:01.0/{SECOND}"), "PXB")

    def test_one_host_bridge_is_phb(self):
        self.assertEqual(self.link(f"pci0000:00/0000:00:01.0/{FIRST}", f"pci0000:00/0000:00:02.0/{SECOND}"), "PHB")

    def test_one_numa_node_is_node(self):
        self.assertEqual(self.link(f"pci0000:00/0000:00:01.0/{FIRST}", f"pci0000:80/0000:80:02.0/{SECOND}"), "NODE")

    def test_two_numa_nodes_are_sys(self):
        self.assertEqual(self.link(f"pci0000:00/0000:00:01.0/{FIRST}", f"pci0000:80/0000:80:02.0/{SECOND}", numa=(0, 1)), "SYS")

    def test_unknown_numa_nodes_are_sys(self):
        self.assertEqual(self.link(f"pci0000:00/0000:00:01.0/{FIRST}", f"pci0000:80/0000:80:02.0/{SECOND}", numa=(-1, -1)), "SYS")

    def test_nvlink_is_shown(self):
        tables = self.machine(f"pci0000:00/0000:00:01.0/{FIRST}", f"pci0000:80/0000:80:02.0/{SECOND}",
                              LD_LIBRARY_PATH=f"{CUDA}:{NVML}")
        self.assertEqual(tables["link"], {"cuda:0": ["self", "NVLink"], "cuda:1": ["NVLink", "self"]})
        self.assertEqual(tables["device"]["cuda:0"], [FIRST, "32.0", "GT/s", "PCIe", "16", "0", "0-7", "4"])
        self.assertEqual(tables["reaches"], {"cuda:0": ["self", "yes"], "cuda:1": ["yes", "self"]})

    def test_devices_without_peer_access_are_shown(self):
        tables = self.machine(LD_LIBRARY_PATH=CUDA, RILL_FAKE_PEERS="0")
        self.assertEqual(tables["reaches"]["cuda:0"], ["self", "no"])
        self.assertEqual(tables["link"]["cuda:0"], ["self", "?"])

    def test_xgmi_is_shown(self):
        nodes = "class/kfd/kfd/topology/nodes"
        for node, location in enumerate((0, 0x4100, 0x4200)):
            os.makedirs(self.path(f"{nodes}/{node}/io_links/0"))
            os.makedirs(self.path(f"{nodes}/{node}/io_links/1"))
            self.write(f"{nodes}/{node}/properties", f"simd_count 4\nlocation_id {location}\ndomain 0\n".encode())
        for node, other in ((1, 2), (2, 1)):
            self.write(f"{nodes}/{node}/io_links/0/properties", f"type 2\nnode_from {node}\nnode_to 0\n".encode())
            self.write(f"{nodes}/{node}/io_links/1/properties", f"type 11\nnode_from {node}\nnode_to {other}\n".encode())
        tables = self.machine(LD_LIBRARY_PATH=HIP)
        # A GPU of NVIDIA's that the machine has comes first.
        self.assertEqual(tables["link"]["hip:0"][-2:], ["self", "XGMI"])
        self.assertEqual(tables["link"]["hip:1"][-2:], ["XGMI", "self"])

    def test_a_machine_without_gpu_has_no_links(self):
        self.assertIn("no GPU", self.succeed("info", "--topology", LD_LIBRARY_PATH=CUDA, RILL_FAKE_DEVICES="0"))


if __name__ == "__main__":
    unittest.main()
