"""Congestion controls written in Python: called as those in Rust are, and what becomes of their mistakes."""

import pytest

import pathweave as pw


class Window(pw.CongestionControl):
    """A fixed window of two full packets, as `{ packets = 2 }` of the engine."""

    def __init__(self, queue_pair: pw.QueuePair) -> None:
        super().__init__(queue_pair)
        self.window_bytes = 2 * queue_pair.mtu_wire_bytes


class Halving(pw.CongestionControl):
    """Halves its window on a mark and grows by a packet a window."""

    def __init__(self, queue_pair: pw.QueuePair) -> None:
        super().__init__(queue_pair)
        self.window = 64.0 * queue_pair.mtu_wire_bytes
        self.window_bytes = self.window

    def on_feedback(self, now_ps: int, feedback: pw.Feedback) -> None:
        if feedback.kind == "ack":
            packet = self.queue_pair.mtu_wire_bytes
            change = -self.window / 2 if feedback.marked else packet * packet / self.window
            self.window = max(packet, self.window + change)
            self.window_bytes = self.window


@pytest.fixture
def sprayed(small: pw.Scenario) -> pw.Scenario:
    return small.with_(set=["topology.hosts_per_leaf=4", 'scheme.base="rps"'])


def test_a_window_in_python_is_that_in_rust(sprayed: pw.Scenario) -> None:
    fixed = sprayed.with_(set=['scheme.policy.cc={ kind = "none", window = { packets = 2 } }'])
    rust = pw.run(fixed, progress=False)
    assert rust.digest != pw.run(sprayed, progress=False).digest, "the window shows in the digest"
    for threads in (None, 2):
        python = pw.run(sprayed, control=Window, threads=threads, progress=False)
        assert python.digest == rust.digest
    (note,) = python.notes
    assert note.startswith("rates were controlled by Window, written in Python")


def test_a_rate_is_kept(sprayed: pw.Scenario) -> None:
    class Slow(pw.CongestionControl):
        def __init__(self, queue_pair: pw.QueuePair) -> None:
            super().__init__(queue_pair)
            self.rate_bps = queue_pair.line_rate_bps / 10

    def times(control: type[pw.CongestionControl]) -> list[float]:
        return pw.run(sprayed, control=control, progress=False).flows.to_polars()["fct_ns"].to_list()

    fast, slow = times(pw.CongestionControl), times(Slow)
    # At a tenth of the rate nothing queues: a message takes ten times its serialisation, and the way.
    assert min(slow) / min(fast) > 5 and max(slow) / min(slow) < 1.2


def test_the_contract_is_checked(sprayed: pw.Scenario) -> None:
    pw.check_control(Halving, seeds=4)
    assert pw.run(sprayed, control=Halving, progress=False).ended == "completed"


def test_mistakes_come_out_with_their_place(sprayed: pw.Scenario) -> None:
    class Wrong(pw.CongestionControl):
        def on_feedback(self, now_ps: int, feedback: pw.Feedback) -> None:
            self.window_bytes = -1

    with pytest.raises(ValueError, match="window_bytes is -1; expected None or a number from 1 to 1e18") as raised:
        pw.run(sprayed, control=Wrong, progress=False)
    assert "raised by a congestion control after" in raised.value.__notes__[0]
    with pytest.raises(TypeError, match="control is of type int; expected a subclass"):
        pw.run(sprayed, control=3, progress=False)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match='"udmp" decides rate and path together'):
        pw.run(sprayed.with_(scheme="udmp"), control=Window, progress=False)


@pytest.mark.parametrize("name", ["windowbytes", "window_byte", "Window_Bytes", "ratebps", "rates_bps"])
def test_a_misspelt_limit_is_refused_and_own_attributes_are_not(sprayed: pw.Scenario, name: str) -> None:
    class Misspelt(pw.CongestionControl):
        def __init__(self, queue_pair: pw.QueuePair) -> None:
            super().__init__(queue_pair)
            self.rate_gbps, self.window, self.alpha = 1.0, 2.0, 3.0
            setattr(self, name, 5)

    with pytest.raises(AttributeError, match="did you mean"):
        pw.run(sprayed, control=Misspelt, progress=False)
