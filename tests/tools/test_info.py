"""rill info DEVICE and --json, on devices of the vendors' stand-ins.  RILL_FAKE_CUDA_DIR and RILL_FAKE_HIP_DIR name the
folders of the fakes."""
import json
import os
import unittest

from tool_test import ToolTest

CUDA, HIP = (os.environ[f"RILL_FAKE_{name}_DIR"] for name in ("CUDA", "HIP"))


class Info(ToolTest):
    def device(self, name, **variables):
        return json.loads(self.succeed("info", name, "--json", **variables))["devices"][0]

    def test_the_vendors_library_is_shown(self):
        for name, folder, place in (("cuda:1", CUDA, "0000:02:00.0"), ("hip:1", HIP, "0000:42:00.0")):
            device = self.device(name, LD_LIBRARY_PATH=folder, RILL_FAKE_DEVICES="2")
            self.assertEqual(device["device"], name)
            self.assertEqual(os.path.dirname(device["library"]), os.path.realpath(folder))
            self.assertRegex(device["driver_version"], r"^\d+\.\d$")
            self.assertEqual(device["pci_bus_id"], place)
            self.assertRegex(device["uuid"], "^[0-9a-f]{32}$")

    def test_a_feature_that_a_driver_lacks_is_explained(self):
        peer = {"supported": True, "why": None}
        self.assertEqual(self.device("cuda:0", LD_LIBRARY_PATH=CUDA, RILL_FAKE_DEVICES="2")["features"]["peer"], peer)
        lacking = self.device("cuda:0", LD_LIBRARY_PATH=CUDA, RILL_FAKE_DEVICES="2", RILL_FAKE_PEERS="0")["features"]["peer"]
        self.assertFalse(lacking["supported"])
        self.assertIn("cannot access any other device's memory", lacking["why"])
        text = self.succeed("info", "cuda:0", LD_LIBRARY_PATH=CUDA, RILL_FAKE_DEVICES="2", RILL_FAKE_PEERS="0")
        self.assertIn(f"  peer                    no: {lacking['why']}\n", text)

    def test_an_absent_device_is_explained(self):
        everything = json.loads(self.succeed("info", "--json", LD_LIBRARY_PATH=CUDA, RILL_FAKE_DEVICES="0",
                                             CUDA_VISIBLE_DEVICES="caf\udce9"))
        why = {device["device"]: device["why"] for device in everything["absent"]}["cuda"]
        self.assertIn('CUDA_VISIBLE_DEVICES is "caf?"', why)
        self.fail_with(1, r'"cuda:0": .*CUDA_VISIBLE_DEVICES is ""', "info", "cuda:0", "--json", LD_LIBRARY_PATH=CUDA,
                       RILL_FAKE_DEVICES="0", CUDA_VISIBLE_DEVICES="")


if __name__ == "__main__":
    unittest.main()
