"""`validation/peer.py` writes what the other simulators read, and reads what they write."""

import subprocess
import sys
from pathlib import Path

import pytest

PEER = Path(__file__).parents[2] / "validation" / "peer.py"

# Not in the order of their starts.
OURS = """src_host,dst_host,size_bytes,start_ns
29,10,5459,1185.851
3,4,2016,0
"""


def peer(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run it on `flows.csv`, which is `OURS`."""
    (folder / "flows.csv").write_text(OURS)
    return subprocess.run([sys.executable, str(PEER), *words], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("conweave flows.csv out", "2\n3 4 3 2016 2.000000000\n29 10 3 5459 2.000001186\n"),
        ("hpcc flows.csv out", "2\n3 4 3 100 2016 2.000000000\n29 10 3 100 5459 2.000001186\n"),
        # 5,459 bytes are six packets of 1,008, 2,016 are two.
        ("hpcc flows.csv out 1008 1000", "2\n3 4 3 100 2000 2.000000000\n29 10 3 100 6000 2.000001186\n"),
        # Hosts follow the 80 switches, and time begins at 0.
        ("laps flows.csv out 80", "2\n83 84 3 2016 0.000000000\n109 90 3 5459 0.000001186\n"),
        (
            "htsim flows.csv out 64",
            "Nodes 64\nConnections 2\n3->4 id 1 start 0 size 2016\n29->10 id 2 start 1185851 size 5459\n",
        ),
    ],
)
def test_flows_as_the_peers_read_them(tmp_path: Path, words: str, expected: str) -> None:
    assert peer(tmp_path, "flows", *words.split()).returncode == 0
    assert (tmp_path / "out").read_text() == expected


LAPS = (
    "SIP:0b006d01 DIP:0b005a01 SP:1002 DP:1002 DataSizeInByte:5459 PktSizeInByte:5747 SendPktSizeInByte:5459 "
    "StartTimeInNs:1186 LastTimeInNs:{} EndTimeInNs:1 BaseFctInNs:0\n"
)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hpcc", "0b001d01 0b000a01 10000 100 5459 2000001186 {} 5000\n"),
        ("laps", LAPS),
    ],
)
def test_figures_of_the_times_that_peers_write(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "fct.txt").write_text(text.format(18_141) + text.format(6_001))
    done = peer(tmp_path, "figures", name, "flows.csv", "fct.txt")
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    # 6.001 us is the smallest and the median by nearest rank, half of (6.001 + 18.141) the mean.
    assert lines[0] == "flows = 2"
    assert lines[2] == "mean_us = 12.071"
    curve = [float(word) for line in lines[4:-1] for word in line.split(",") if word.strip()]
    assert len(curve) == 101
    assert (curve[0], curve[50], curve[51], curve[100]) == (6.001, 6.001, 18.141, 18.141)


def test_a_flow_that_did_not_complete_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "fct.txt").write_text("0b001d01 0b000a01 10000 100 5459 2000001186 18141 5000\n")
    done = peer(tmp_path, "figures", "hpcc", "flows.csv", "fct.txt")
    assert done.returncode != 0
    assert "fct.txt: 1 of 2 flows completed" in done.stderr
