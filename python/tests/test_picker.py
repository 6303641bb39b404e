"""Path pickers written in Python: called as those in Rust are, and what becomes of their mistakes."""

import functools
import random
import traceback
from collections.abc import Sequence
from pathlib import Path

import pytest

import pathweave as pw
from conftest import ROOT

ROUND_ROBIN = 'scheme.policy.picker="round_robin"'


class RoundRobin(pw.Picker):
    """What `round_robin` of the engine does, from the same random start."""

    def __init__(self, queue_pair: pw.QueuePair) -> None:
        super().__init__(queue_pair)
        self.next = ((queue_pair.seed >> 32) * queue_pair.paths) >> 32

    def pick(self, now_ps: int, paths: Sequence[int], packet: pw.Packet) -> int:
        return paths[self.next % len(paths)]

    def on_sent(self, now_ps: int, path: int, packet: pw.Packet) -> None:
        self.next = (self.next + 1) % self.queue_pair.paths


@pytest.fixture
def sprayed(small: pw.Scenario) -> pw.Scenario:
    return small.with_(set=["topology.hosts_per_leaf=4", 'scheme.base="rps"', "scheme.paths=64"])


def test_round_robin_in_python_is_that_in_rust(sprayed: pw.Scenario) -> None:
    rust = pw.run(sprayed.with_(set=[ROUND_ROBIN]), progress=False)
    assert rust.digest != pw.run(sprayed, progress=False).digest, "the picker shows in the digest"
    for threads in (None, 1, 2):
        python = pw.run(sprayed, picker=RoundRobin, threads=threads, progress=False)
        assert python.digest == rust.digest
        assert python.flows.to_polars().drop("scheme").equals(rust.flows.to_polars().drop("scheme"))


def test_the_permutation_of_the_demo() -> None:
    scenario = pw.Scenario.load(ROOT / "scenarios" / "demo" / "slow-links.toml")
    short = scenario.with_(set=["workload[0].size=32KB", 'scheme.base="rps"'])
    python = pw.run(short, picker=RoundRobin, progress=False)
    assert python.ended == "completed" and len(python.flows) == 320
    assert python.digest == pw.run(short.with_(set=[ROUND_ROBIN]), progress=False).digest


def test_results_name_the_picker(sprayed: pw.Scenario, tmp_path: Path) -> None:
    result = pw.run(sprayed, picker=functools.partial(RoundRobin), progress=False)
    assert set(result.flows.to_polars()["scheme"]) == {"rps*+RoundRobin"}, "a preset with changes, and the picker"
    (note,) = result.notes
    assert note == "paths were picked by RoundRobin, written in Python, in place of the picker of the scheme"
    written = (result.write(tmp_path / "out") / "scenario.toml").read_text()
    assert written.startswith(f"# {note}: this file alone does not repeat the run.\n")
    assert pw.Scenario.from_toml(written).with_(scheme="rps").name == sprayed.name


def test_what_a_picker_is_told(sprayed: pw.Scenario) -> None:
    pairs: list[pw.QueuePair] = []
    heard: list[pw.Feedback] = []

    class Listening(RoundRobin):
        def __init__(self, queue_pair: pw.QueuePair) -> None:
            super().__init__(queue_pair)
            self.out: dict[int, tuple[int, int]] = {}
            self.now = 0
            pairs.append(queue_pair)

        def at(self, now_ps: int) -> None:
            assert now_ps >= self.now, "time does not run backwards"
            self.now = now_ps

        def pick(self, now_ps: int, paths: Sequence[int], packet: pw.Packet) -> int:
            self.at(now_ps)
            assert list(paths) == list(range(self.queue_pair.paths))
            assert 0 < packet.payload_bytes <= self.queue_pair.mtu_payload_bytes
            assert packet.payload_bytes < packet.wire_bytes
            return super().pick(now_ps, paths, packet)

        def on_sent(self, now_ps: int, path: int, packet: pw.Packet) -> int:  # type: ignore[override]
            self.at(now_ps)
            super().on_sent(now_ps, path, packet)
            memo = 2**32 - 1 - packet.psn
            self.out[packet.psn] = (path, memo)
            assert packet.inflight_packets >= 1
            return memo

        def on_feedback(self, now_ps: int, feedback: pw.Feedback) -> None:
            self.at(now_ps)
            heard.append(feedback)
            if feedback.kind == "ack":
                assert feedback.psn is not None
                assert (feedback.path, feedback.memo) == self.out.pop(feedback.psn)

    result = pw.run(sprayed, picker=Listening, progress=False)
    assert result.ended == "completed"
    flows = result.flows.to_polars()
    assert len(pairs) >= len(flows) == 8 and len({pair.seed for pair in pairs}) == len(pairs)
    assert {pair.line_rate_bps for pair in pairs} == {100_000_000_000}
    acks = [feedback for feedback in heard if feedback.kind == "ack"]
    # Nothing was lost, so each packet was heard of once.
    packet = pairs[0].mtu_payload_bytes
    assert len(acks) == sum(-(-size // packet) for size in flows["size_bytes"])
    timed = [ack.rtt_ps for ack in acks if ack.rtt_ps is not None]
    assert timed and min(timed) >= min(pair.base_rtt_ps for pair in pairs) // 2


def test_what_user_code_raises_ends_the_run(sprayed: pw.Scenario) -> None:
    class Broken(RoundRobin):
        def pick(self, now_ps: int, paths: Sequence[int], packet: pw.Packet) -> int:
            if packet.psn == 5:
                raise KeyError("no such path")
            return super().pick(now_ps, paths, packet)

    for threads in (1, 2):
        with pytest.raises(KeyError, match="no such path") as raised:
            pw.run(sprayed, picker=Broken, threads=threads, progress=False)
        assert traceback.extract_tb(raised.value.__traceback__)[-1].name == "pick"
        (note,) = raised.value.__notes__
        assert note.startswith("raised by a picker after ") and note.endswith(" us of simulated time")
    # Nothing of it is left for the next one.
    again = pw.run(sprayed, picker=RoundRobin, progress=False)
    assert again.digest == pw.run(sprayed.with_(set=[ROUND_ROBIN]), progress=False).digest

    class Unmade(RoundRobin):
        def __init__(self, queue_pair: pw.QueuePair) -> None:
            raise RuntimeError("no state for this queue pair")

    with pytest.raises(RuntimeError, match="no state for this queue pair"):
        pw.run(sprayed, picker=Unmade, progress=False)


def test_ctrl_c_in_user_code_ends_the_run(sprayed: pw.Scenario) -> None:
    class Interrupted(RoundRobin):
        def on_feedback(self, now_ps: int, feedback: pw.Feedback) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pw.run(sprayed, picker=Interrupted, progress=False)


@pytest.mark.parametrize(
    ("answer", "error", "text"),
    [
        (999, ValueError, "pick returned 999; expected a path from 0 to 63"),
        (-1, ValueError, "pick returned -1; expected a path from 0 to 63"),
        ("3", TypeError, "pick returned '3'; expected a path from 0 to 63"),
        (None, TypeError, "pick returned None; expected a path from 0 to 63"),
    ],
)
def test_a_path_that_cannot_be_used(sprayed: pw.Scenario, answer: object, error: type[Exception], text: str) -> None:
    class Wrong(pw.Picker):
        def pick(self, now_ps: int, paths: Sequence[int], packet: pw.Packet) -> int:
            return answer  # type: ignore[return-value]

    with pytest.raises(error, match=text):
        pw.run(sprayed, picker=Wrong, progress=False)


def test_what_is_no_picker(sprayed: pw.Scenario) -> None:
    with pytest.raises(TypeError, match=r"picker is of type str; expected a subclass of pathweave\.Picker"):
        pw.run(sprayed, picker="round_robin", progress=False)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"the picker is of type int; expected an instance"):
        pw.run(sprayed, picker=lambda queue_pair: 3, progress=False)  # type: ignore[arg-type,return-value]
    with pytest.raises(ValueError, match='scheme "udmp" decides rate and path together and has no picker'):
        pw.run(sprayed, scheme="udmp", picker=RoundRobin, progress=False)

    class Memo(RoundRobin):
        def on_sent(self, now_ps: int, path: int, packet: pw.Packet) -> int:  # type: ignore[override]
            return -1

    with pytest.raises(ValueError, match="on_sent returned -1; expected None or an integer from 0 to 4294967295"):
        pw.run(sprayed, picker=Memo, progress=False)


def test_the_contract_of_pickers() -> None:
    told: list[pw.Path] = []

    class Told(RoundRobin):
        def on_paths(self, now_ps: int, paths: Sequence[pw.Path]) -> None:
            numbers = [path.path for path in paths]
            assert numbers == sorted(set(numbers))
            assert set(numbers) <= set(range(self.queue_pair.paths))
            told.extend(paths)

    pw.check_picker(Told, seeds=2)
    assert {path.up for path in told} == {True, False}, "in one situation a path dies"
    assert all(path.usable for path in told if path.up)

    class Chance(pw.Picker):
        def pick(self, now_ps: int, paths: Sequence[int], packet: pw.Packet) -> int:
            return random.choice(paths)

    with pytest.raises(AssertionError, match=r"took other paths with the same seed; .* `self\.random`"):
        pw.check_picker(Chance)

    class Drawn(pw.Picker):
        def pick(self, now_ps: int, paths: Sequence[int], packet: pw.Packet) -> int:
            return paths[int(self.random.random() * len(paths))]

    pw.check_picker(Drawn, seeds=2)

    class Forgetful(pw.Picker):
        def pick(self, now_ps: int, paths: Sequence[int], packet: pw.Packet) -> int:
            return packet.psn % self.queue_pair.paths

    with pytest.raises(ValueError, match="expected one of the usable paths"):
        pw.check_picker(Forgetful)
