"""Scenarios as typed objects: a class for each table of a scenario file, with its fields and defaults.

>>> from pathweave import model
>>> scenario = model.ScenarioFile(
...     topology=model.StarTopology(hosts=4),
...     workload=[model.PermutationWorkload(size="64KB")],
... )
>>> scenario.checked().name
'scenario'

Quantities are texts with their unit, as in a file: `"1.5us"`, `"100Gbps"`, `"8MB"`. What is None is not said, and has
its default. What the engine finds wrong it tells with the field, in `checked()` and whenever such a scenario is run.

Written by `python/tools/generate_model.py`; a test says when that has to be done anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from ._table import Root, Table

__all__ = [
    "AckClass",
    "AckPolicy",
    "Algorithm",
    "Algorithms",
    "AllShortestPathSet",
    "AllToAllWorkload",
    "AlphaUnit",
    "Announce",
    "Arithmetic",
    "Ask",
    "AstraTopology",
    "BdpWindow",
    "BytesQuantum",
    "Calibrate",
    "Cc",
    "ChakraWorkload",
    "CleanNotice",
    "CnpMode",
    "CnpPolicy",
    "CollectiveWorkload",
    "ComputeWhen",
    "ConWeave",
    "Conga",
    "CongaCounts",
    "ConnectionService",
    "CoolMode",
    "CopyMarks",
    "CoreWiring",
    "Credit",
    "CrossDcTopology",
    "DatagramService",
    "DcqcnCc",
    "DcqcnPreset",
    "DctcpCc",
    "DctcpRateCc",
    "Decrease",
    "Delivery",
    "Demand",
    "DlbfPolicy",
    "DlbfScope",
    "DlbfVariant",
    "DragonflyTopology",
    "Draw",
    "Drill",
    "DrillVariant",
    "DumbbellTopology",
    "E2eMode",
    "EcmpHash",
    "EcmpRouting",
    "Ecn",
    "EethPlace",
    "EndToEndService",
    "Exchange",
    "External",
    "FabricControl",
    "FabricPace",
    "FatTreeTopology",
    "Fault",
    "FeedForward",
    "Fidelity",
    "FilePathSet",
    "FileTopology",
    "FlowFormat",
    "FlowSpec",
    "FlowsWorkload",
    "Fold",
    "Forgives",
    "Forwarding",
    "ForwardingConfig",
    "Framing",
    "FullMeshTopology",
    "GoBackNRecovery",
    "GoBackNRepeatedRecovery",
    "GoalWorkload",
    "GpuQueues",
    "GrantCost",
    "HopScaling",
    "HpccTopology",
    "HtsimTopology",
    "IdleGrants",
    "IncastWorkload",
    "IncreaseOver",
    "JellyfishTopology",
    "Jitter",
    "KShortestPathSet",
    "LapsPathSet",
    "LapsPolicy",
    "LapsTopology",
    "LapsVariant",
    "LastHop",
    "LastHopTrims",
    "LeafSpineTopology",
    "LetFlow",
    "Limit",
    "LinkCorruptionFault",
    "LinkDelayFault",
    "LinkDownFault",
    "LinkFlapFault",
    "LinkLossFault",
    "LinkRateFault",
    "LoadOf",
    "LogNormalJitter",
    "Margin",
    "MarkAt",
    "MarkedRate",
    "MessageConnections",
    "MixedPicker",
    "Model",
    "MoeWorkload",
    "MprdmaPolicy",
    "MrcPolicy",
    "MswiftCc",
    "Ndt",
    "Network",
    "NextHopsRouting",
    "Nic",
    "NoneCc",
    "Nscc",
    "NsccCc",
    "NsccProfile",
    "Nsf",
    "Observe",
    "OnSwitch",
    "Operation",
    "Optimizer",
    "OrderGuards",
    "OwnPathSet",
    "PacedFabricControl",
    "PacketGrantCost",
    "PacketsWindow",
    "Pairs",
    "PathChoice",
    "PathOrderRecovery",
    "PathRto",
    "PathSet",
    "Pattern",
    "PauseStormFault",
    "PausesJitter",
    "Penalties",
    "PenaltiesPicker",
    "PermutationWorkload",
    "Pfc",
    "PfcThreshold",
    "Picker",
    "PipelineWorkload",
    "Placement",
    "Plb",
    "PlbPicker",
    "PoissonWorkload",
    "Policy",
    "Ports",
    "PresetTopology",
    "Quantum",
    "RailTopology",
    "Rate",
    "RateCut",
    "Reaction",
    "Recovery",
    "Recycled",
    "RecycledPicker",
    "ReflexPolicy",
    "Reordering",
    "Repair",
    "ReplyAfter",
    "ReportedReordering",
    "RepsPolicy",
    "Retransmission",
    "RetryOrder",
    "RingAllReduceWorkload",
    "RingScope",
    "Role",
    "RouteBytes",
    "Routing",
    "RttSource",
    "Run",
    "ScenarioFile",
    "Schedule",
    "Scheme",
    "SchemeName",
    "SelectiveRepeatRecovery",
    "SenderSwitchRouting",
    "Service",
    "SharedReceiveService",
    "SideChannel",
    "SilentReordering",
    "SimaiTopology",
    "SimaiWorkload",
    "Size",
    "SleekRecovery",
    "Slow",
    "Slows",
    "SmarttCc",
    "SourceRouting",
    "SplitPolicy",
    "StarTopology",
    "StrackCc",
    "Stragglers",
    "Swift",
    "SwiftCc",
    "SwiftHops",
    "Switch",
    "SwitchDownFault",
    "Thresholds",
    "Time",
    "TimedRecovery",
    "TimelyCc",
    "TimelyPreset",
    "TimeoutsRecovery",
    "Topology",
    "TorusEnds",
    "TorusTopology",
    "TrainingWorkload",
    "TransformerModel",
    "TransformerWorkload",
    "Trim",
    "UdmpLate",
    "UdmpPolicy",
    "UdmpVariant",
    "Ugal",
    "UniformJitter",
    "Unused",
    "Verb",
    "Wcmp",
    "WeavePolicy",
    "Window",
    "WindowOf",
    "Workload",
]


@dataclass(kw_only=True, repr=False)
class AckPolicy(Table):
    """When the receiver acknowledges.

    Args:
        every_bytes: Absent: packets count. Given: an acknowledgement for so many bytes of new packets, headers and gaps
            included, whatever `every_packets` says; and at once for the first packet of a queue pair, for marked ones,
            for what arrives twice or was sent again, for those with which the sender asks, and when such a one stops
            being ahead of a gap. Senders ask where they may send no more, or have no more (Ultra Ethernet 1.0, section
            3.6.12).
        every_packets: Data packets an acknowledgement; 1 is one for each. Acknowledged at once are the last packet of a
            message, what arrives twice, what was sent again while packets are missing, the packet that proves one lost
            (`recovery.reorder_packets`), and what completes a message. Packets out of order are not: the
            acknowledgement tells of 64 of them. Go-back-N refuses these at once.
        max_delay: A delayed acknowledgement leaves at the latest after this time.
    """

    every_bytes: Size | None = None
    every_packets: int | None = None
    max_delay: Time | None = None


@dataclass(kw_only=True, repr=False)
class Algorithms(Table):
    """How the collectives of a trace are done.

    Args:
        all_gather: All-gather, likewise. Default "ring".
        all_reduce: All-reduce. Default "ring".
        all_to_all: All-to-all. Default "direct".
        broadcast: Broadcast and reduce. Default "ring".
        chunk: Double binary trees and chains send pieces of at most so many bytes (default 512 KiB, as NCCL).
        local_size: Ranks in a row that form a server, for the hierarchical all-reduce (default 8, the GPUs of an HGX
            board).
        reduce_scatter: Reduce-scatter. Halving and doubling only where the ranks are a power of two. Default "ring".
    """

    all_gather: Algorithm | None = None
    all_reduce: Algorithm | None = None
    all_to_all: Algorithm | None = None
    broadcast: Algorithm | None = None
    chunk: Size | None = None
    local_size: int | None = None
    reduce_scatter: Algorithm | None = None


@dataclass(kw_only=True, repr=False)
class NoneCc(Table):
    """No congestion control: as fast as the line allows, or a fixed window.

    Args:
        window: The most a queue pair may have in flight: "unlimited" (default), { bdp = 1.0 } or { packets = 64 }.
    """

    kind: ClassVar[str | None] = "none"
    window: Window | None = None


@dataclass(kw_only=True, repr=False)
class DcqcnCc(Table):
    """DCQCN's reaction point: rate-based, driven by congestion notifications.

    Args:
        additive_increase: R_AI: what an additive step adds to the target.
        alpha_timer: K: alpha is updated (sampled) or decays (immediate) once in this time.
        byte_counter: B: wire bytes sent that make one step of rate increase; 0B: no byte counter.
        clamp_target: Every cut sets the target to the rate before it. If false, a cut without an increase since the
            last one keeps the old target.
        decrease_interval: The rate falls at most once in this time; with "immediate", 0s reacts to every notification.
        fast_recovery_stages: F: steps that halve the distance to the target before the target itself rises.
        gain: g: weight of the newest observation in alpha, 0 to 1.
        hyper_increase: R_HAI: what a step adds to the target once both timer and byte counter are past F.
        increase_scale: Line rate for which R_AI and R_HAI are given; they grow in proportion. 0bps: they are absolute.
        initial_alpha: Alpha at the first notification, 0 to 1; a cut is by alpha / 2.
        min_rate: The rate never falls below this.
        preset: Where the values below come from unless set: "hpcc" (default), "paper", "conweave", "laps", "astra".
        rate_timer: T: time of one step of rate increase.
        reaction: When a notification acts: "immediate" or "sampled".
        window: Bound on bytes in flight: "unlimited", { bdp = 1.0 } or { packets = 64 }.
        window_follows_rate: The window shrinks in proportion to rate / line rate.
    """

    kind: ClassVar[str | None] = "dcqcn"
    additive_increase: Rate | None = None
    alpha_timer: Time | None = None
    byte_counter: Size | None = None
    clamp_target: bool | None = None
    decrease_interval: Time | None = None
    fast_recovery_stages: int | None = None
    gain: float | None = None
    hyper_increase: Rate | None = None
    increase_scale: Rate | None = None
    initial_alpha: float | None = None
    min_rate: Rate | None = None
    preset: DcqcnPreset | None = None
    rate_timer: Time | None = None
    reaction: Reaction | None = None
    window: Window | None = None
    window_follows_rate: bool | None = None


@dataclass(kw_only=True, repr=False)
class DctcpCc(Table):
    """DCTCP: window-based, driven by the share of marked packets.

    Args:
        gain: g: weight of the newest round in the average share of marked packets (RFC 8257, section 4.2: 1/16).
            Default 0.0625.
        increase: Packets added a round trip (1). The study of LAPS has 1 Gb/s a round trip instead: about 1.6 packets
            of 1,000 bytes at 13 us. Default 1.0.
        initial: Window at the start: one bandwidth-delay product, as NICs that begin at line rate; Linux has 10
            packets.
        max_bdp: Largest window, in bandwidth-delay products. It must hold what waits at the marking threshold, too.
            Default 8.0.
        min_packets: Smallest window, in packets (Linux: 2). Default 2.0.
    """

    kind: ClassVar[str | None] = "dctcp"
    gain: float | None = None
    increase: float | None = None
    initial: Window | None = None
    max_bdp: float | None = None
    min_packets: float | None = None


@dataclass(kw_only=True, repr=False)
class DctcpRateCc(Table):
    """DCTCP with a rate in place of the window, as simulators of RDMA have it.

    Args:
        gain: g: weight of the newest round in the average share of marked packets. Default 1/256 (CONFIG_DCQCN.txt of
            the study of LAPS, which shares it with DCQCN).
        increase: Added after a round trip without a mark. Default 1 Gb/s (the same file; HPCC's simulator too).
        min_rate: The least rate. Default 100 Mb/s (the same file).
        window: The most that may be in flight. Default one bandwidth-delay product of the pair; the study has the
            largest one of the fabric.
    """

    kind: ClassVar[str | None] = "dctcp_rate"
    gain: float | None = None
    increase: Rate | None = None
    min_rate: Rate | None = None
    window: Window | None = None


@dataclass(kw_only=True, repr=False)
class MswiftCc(Table):
    """MSwift: Swift on the median of delays, for packets sprayed over paths; as understood at second hand.

    Args:
        median_windows: The median is that of the delays of so many windows of packets (0.5), at least one packet and at
            most 1,024. Default 0.5.
        patience: Acknowledgements in a row over the target before the window shrinks (5; 1: at once). Default 5.
        swift: Parameters of Swift.
    """

    kind: ClassVar[str | None] = "mswift"
    median_windows: float | None = None
    patience: int | None = None
    swift: Swift | None = None


@dataclass(kw_only=True, repr=False)
class NsccCc(Table):
    """NSCC, Ultra Ethernet's: a window in bytes, driven by delay and marks together.

    Args:
        apply_packets: Packets acknowledged after which increases are applied (8). Default 8.0.
        collapse_delay: Quick adapt: a queueing delay of more than this many targets is as bad as a trim. Absent: 4;
            with profile "ue1.0" no delay is where switches trim.
        collapse_share: Quick adapt: only if less than this share of the largest window came through (0.125). Default
            0.125.
        constant_increase: eta: packets added once a round trip whatever the delay (0.15). Default 0.15.
        decrease: gamma: decrease for each share of the average delay above the target (0.8). Default 0.8.
        delay_gain: Weight of the newest queueing delay in its average (0.0125). Default 0.0125.
        delay_target: Target of the queueing delay, in idle round-trip times. Absent: 0.75 where switches trim,
            otherwise 1.
        fair_increase: fi: packets added a round trip when unmarked above the target (5). Default 5.0.
        fast_delay: Below it nothing queues (1 us, whatever the network). Default "1us".
        fast_increase: Share of the bytes acknowledged that is added once a window of them has met a delay below
            `fast_delay` (0.25). Default 0.25.
        last_hop_trims: Whether what is trimmed at the last hop takes its bytes from the window: "cut" (default) it
            does; "spare" it does not, where receivers grant credit and see to the last hop themselves.
        max_bdp: Largest window, which is also the first, in bandwidth-delay products (1.5). Default 1.5.
        max_decrease: Most of the window that goes at once (0.5). Default 0.5.
        median_packets: Most packets of the last half window of which the median queueing delay counts for each one's
            (MNSCC: 4), as understood at second hand. Absent: each has its own.
        network_rtt: Round-trip time of the idle network, from which target, largest window and increases are reckoned.
            Absent: that of the pair of hosts. uet-htsim has that of the longest path of the network for every pair.
        profile: Where simulator and specification differ. Default "htsim".
        proportional_increase: alpha: packets added a round trip while nothing queues (4); in proportion to what is left
            of the target. Default 4.0.
    """

    kind: ClassVar[str | None] = "nscc"
    apply_packets: float | None = None
    collapse_delay: float | None = None
    collapse_share: float | None = None
    constant_increase: float | None = None
    decrease: float | None = None
    delay_gain: float | None = None
    delay_target: float | None = None
    fair_increase: float | None = None
    fast_delay: Time | None = None
    fast_increase: float | None = None
    last_hop_trims: LastHopTrims | None = None
    max_bdp: float | None = None
    max_decrease: float | None = None
    median_packets: int | None = None
    network_rtt: Time | None = None
    profile: NsccProfile | None = None
    proportional_increase: float | None = None


@dataclass(kw_only=True, repr=False)
class SmarttCc(Table):
    """SMaRTT, NSCC's ancestor: a window in bytes, driven by delay and marks; as understood at second hand.

    Args:
        fair_decrease: Share of the marked bytes that a window of a bandwidth-delay product loses by them (0.5). Default
            0.5.
        fair_increase: Bandwidth-delay products added for a window acknowledged without marks (0.02). Default 0.02.
        fast_delay: Up to it nothing queues (1 us, whatever the network). Default "1us".
        fast_increase: Packets added for each acknowledged once a window of them has met a delay of at most `fast_delay`
            (1). Default 1.0.
        mark_gain: Weight of the newest acknowledgement in the share of marked ones (0.05). Default 0.05.
        mark_share: Marks shrink the window only while more than this share of acknowledgements has one (0.3). Default
            0.3.
        max_bdp: Largest window, which is also the first, in bandwidth-delay products (1.5, NSCC's). Default 1.5.
        multiplicative_decrease: Share of the marked bytes that goes for each share of the round-trip time above the
            target (1). Default 1.0.
        proportional_increase: Packets added for each packet acknowledged in a round trip, times the share of it that is
            left of the target (2). Default 2.0.
        rtt_target: Target of the round-trip time, in idle ones (1.5); quick adapt looks as often. Default 1.5.
    """

    kind: ClassVar[str | None] = "smartt"
    fair_decrease: float | None = None
    fair_increase: float | None = None
    fast_delay: Time | None = None
    fast_increase: float | None = None
    mark_gain: float | None = None
    mark_share: float | None = None
    max_bdp: float | None = None
    multiplicative_decrease: float | None = None
    proportional_increase: float | None = None
    rtt_target: float | None = None


@dataclass(kw_only=True, repr=False)
class StrackCc(Table):
    """STrack: window-based, driven by delay and marks together.

    Args:
        collapse_delay: A queueing delay of this many targets brings the window down to what was acknowledged since the
            last check, as a loss does. 4, NSCC's; the paper's is not known to us. Default 4.0.
        constant_increase: eta: packets added a base round-trip time whatever the delay (0.15). Default 0.15.
        decrease: gamma: decrease for each share of the average delay above the target (0.8). Default 0.8.
        delay_gain: Weight of the newest queueing delay in its average. 0.0125, NSCC's; the paper's is not known to us.
            Default 0.0125.
        delay_target: Target of the queueing delay, in idle round-trip times of the pair of hosts (1). The simulator
            takes those from the topology; real hosts measure them, the delay of hosts included. Default 1.0.
        fair_increase: beta: packets added a round trip above `high_delay` (5). Default 5.0.
        high_delay: Unmarked packets that queue for at least this many targets earn `fair_increase` (3; text and table
            of the paper have 2 and 3). Default 3.0.
        max_bdp: Largest window, which is also the first, in bandwidth-delay products (1.5, NSCC's). Default 1.5.
        max_decrease: Most of the window that goes at once (0.5). Default 0.5.
        proportional_increase: alpha: packets added a round trip while nothing queues (4); in proportion to what is left
            of the target. Default 4.0.
    """

    kind: ClassVar[str | None] = "strack"
    collapse_delay: float | None = None
    constant_increase: float | None = None
    decrease: float | None = None
    delay_gain: float | None = None
    delay_target: float | None = None
    fair_increase: float | None = None
    high_delay: float | None = None
    max_bdp: float | None = None
    max_decrease: float | None = None
    proportional_increase: float | None = None


@dataclass(kw_only=True, repr=False)
class SwiftCc(Table):
    """Swift: window-based, driven by delay against a target.

    Args:
        decrease: beta: decrease for each share of the delay above the target (SIGCOMM 2020: 0.8). Default 0.8.
        hop_scaling: Makes the target of a base and a term for each hop instead of idle round-trip time and
            `queue_target`. Absent: the latter. Not used where the number of hops is not known, on real hosts.
        increase: ai: packets added a round trip (SIGCOMM 2020: 1). Default 1.0.
        increase_over: Which round trip that is, where delays are measured over a part of the way only. Default "path".
        max_bdp: Largest window, in bandwidth-delay products; the flow starts with one. Default 2.0.
        max_decrease: max_mdf: most of the window that goes at once (SIGCOMM 2020: 0.5). Default 0.5.
        min_packets: Smallest window, in packets (SIGCOMM 2020: 0.001). Default 0.001.
        min_rate: The window never falls below what this rate needs over the idle path. Absent: a thousandth of the
            line. Over a WAN of a millisecond `min_packets` is a packet a second, from which no window recovers. 0bps:
            no such floor.
        queue_target: Queueing delay allowed to a large window. Under spraying it must cover the spread between paths,
            or every round trip holds a packet above the target. Absent: what 32 full packets take on a port of the
            host, which is the grain of queues whatever the rate: 10.8 us with packets of 4,096 B at 100 Gb/s.
        scaling_max_packets: fs_max_cwnd: window, in packets, from which on it adds nothing (SIGCOMM 2020: 100). Default
            100.0.
        scaling_min_packets: fs_min_cwnd: window, in packets, at and below which flow scaling adds all of its range
            (SIGCOMM 2020: 0.1). Default 0.1.
        scaling_range: fs_range: the most that flow scaling adds to the target. Absent: four times the queueing delay
            allowed to a large window (htsim: five times the base target).
    """

    kind: ClassVar[str | None] = "swift"
    decrease: float | None = None
    hop_scaling: HopScaling | None = None
    increase: float | None = None
    increase_over: IncreaseOver | None = None
    max_bdp: float | None = None
    max_decrease: float | None = None
    min_packets: float | None = None
    min_rate: Rate | None = None
    queue_target: Time | None = None
    scaling_max_packets: float | None = None
    scaling_min_packets: float | None = None
    scaling_range: Time | None = None


@dataclass(kw_only=True, repr=False)
class TimelyCc(Table):
    """TIMELY: rate-based, driven by the gradient of round-trip times.

    Args:
        beta: beta: weight of decreases, 0 to 1.
        gain: Weight of the newest sample in the average of differences, 0 to 1.
        hyper_after: Increases in a row after which further ones add `hyper_factor` steps.
        hyper_factor: Steps an increase adds from then on (hyperactive increase).
        min_rate: The rate never falls below this.
        min_rtt: Round-trip time by which differences are divided to make the gradient.
        preset: Where the values below come from unless set: "hpcc" (default), "paper", "erpc", "near".
        step: delta: what an increase adds to the rate.
        step_scale: Line rate for which `step` is given; it grows in proportion. 0bps: it is absolute.
        t_high: T_high: above it the rate always falls.
        t_low: T_low: below this round-trip time the rate always rises.
        window: Bound on bytes in flight: "unlimited", { bdp = 1.0 } or { packets = 64 }.
    """

    kind: ClassVar[str | None] = "timely"
    beta: float | None = None
    gain: float | None = None
    hyper_after: int | None = None
    hyper_factor: int | None = None
    min_rate: Rate | None = None
    min_rtt: Time | None = None
    preset: TimelyPreset | None = None
    step: Rate | None = None
    step_scale: Rate | None = None
    t_high: Time | None = None
    t_low: Time | None = None
    window: Window | None = None


@dataclass(kw_only=True, repr=False)
class CnpPolicy(Table):
    """Congestion notification point (DCQCN NP).

    Args:
        interval: At most one notification a queue pair in this time (DCQCN's N). Zero: one for every marked packet.
        mode: Whether notifications are sent.
    """

    interval: Time | None = None
    mode: CnpMode | None = None


@dataclass(kw_only=True, repr=False)
class ConWeave(Table):
    """Parameters of ConWeave. The defaults are those of its authors' simulator (conweave-ns3, run.py) for two tiers and
    a lossless fabric; for three tiers it has 64 us, 600 us and 1 ms for `flush_extra`, `flush_default` and
    `idle_after`.

    Args:
        entries: Flows a switch can remember as sender's and as receiver's, a power of two from 4 on. Others are hashed.
            Default 16,384 (ours).
        flush_default: That time, from when the first packet is held, where nothing is known of the old way. Default 200
            us.
        flush_extra: Held packets leave this long after the time at which the last packet before them was to come.
            Default 16 us.
        idle_after: A flow without a packet for longer than this has none under way and may change its way at once.
            Default 300 us.
        path_pause: How long a way is left alone after news of congestion. Default 16 us.
        reorder_queues: Flows whose packets can be held for one port at a time; packets of others pass out of order.
            Default 31 (ours: all but one of 32 queues of a port).
        reply_after: Which round trip that is. Where all ways cost the same it hardly matters. Default "way".
        reply_extra: The answer to a probe is late after an idle round trip and this. Default 4 us: 50 kB at 100 Gb/s.
        stale_after: The switch of the receiver forgets a flow after this long, if it needs the room. Default 2 ms.
    """

    entries: int | None = None
    flush_default: Time | None = None
    flush_extra: Time | None = None
    idle_after: Time | None = None
    path_pause: Time | None = None
    reorder_queues: int | None = None
    reply_after: ReplyAfter | None = None
    reply_extra: Time | None = None
    stale_after: Time | None = None


@dataclass(kw_only=True, repr=False)
class Conga(Table):
    """Parameters of CONGA.

    Args:
        ageing: A metric not heard of for longer than this counts as 0. Default 10 ms (CONGA, section 3.3).
        counts: What metrics count: "sent" (default), or "routed", as in conweave-ns3.
        dre_alpha: The share of the estimate taken away each time. Default 0.125.
        dre_interval: How often the estimate of a link's load is discounted. Default 20 us, with `dre_alpha` the 160 us
            over which the CONGA paper averages (section 3.6). The class of conweave-ns3 has 200 us and 0.2, but what it
            runs (its `network-load-balance.cc`) sets 50 us and 0.2, which is 250 us, and lets figures age for 500 us;
            the study of LAPS has 200 us and 0.2.
        entries: Flowlets a leaf can tell apart: entries of its table, a power of two. Default 65,536 (CONGA, section
            3.4).
        gap: A pause longer than this begins a flowlet. Default 50 us (the evaluation of LAPS; that of ConWeave has 100
            us, the CONGA paper 500 us).
        metric_bits: Bits of a congestion metric, 1 to 8. Default 3 (CONGA, section 3.6).
        samples: Ways looked at for each flowlet, neighbours at a random place in their list; 0: all. Default 0 (CONGA,
            section 3.5); conweave-ns3 and the study of LAPS have 4.
        stay: Whether a flowlet takes the way of the one before it unless another is better. Default true (CONGA,
            section 3.5); in conweave-ns3 and the study of LAPS chance decides among what is equally good.
    """

    ageing: Time | None = None
    counts: CongaCounts | None = None
    dre_alpha: float | None = None
    dre_interval: Time | None = None
    entries: int | None = None
    gap: Time | None = None
    metric_bits: int | None = None
    samples: int | None = None
    stay: bool | None = None


@dataclass(kw_only=True, repr=False)
class Credit(Table):
    """Receivers grant credit, and senders send what they have credit for. Default: Ultra Ethernet's receiver-based
    congestion control (RCCC), as uet-htsim 40ccb05 has it.

    Args:
        ask: Whether a sender with credit for several receivers asks each for its share only: "shared" (RCCC) or
            "whole". Default "shared".
        cost: What a grant counts for on the link: "granted" (RCCC) what it grants; `{ packet = "38B" }` a full packet
            and so many bytes, whatever it grants. Default "granted".
        demand: For what is granted: "target" (RCCC) at most what is missing to the pull target; "full" (EQDS) full
            grants while anything is missing, and ahead of all others a packet for each one that was trimmed; "arrivals"
            (NDP) a grant for each packet that arrives, whole or trimmed, as far as the target goes. Default "target".
        fabric: Whether grants slow down where the fabric, not the receiver's link, is short: "off", or `{ paced = {}
            }`, which is made for `switch.ecn.last_hop = "leave"`. Default "off".
        grant: Quanta of a grant, 1 to 65535 (RCCC: 64, which are 16 KiB). Default 64.
        idle: Whether those who want nothing are granted something while nobody else wants it, up to a window beyond
            their target: "on" (RCCC, EQDS) or "off". Default "on".
        pace: Share of the link at which grants are paced, above 0, at most 2 (RCCC: 0.99). Default 0.99.
        quantum: What a quantum is: `{ bytes = "256B" }` so many bytes on the wire, headers included; "packet" a packet
            of any size.
        unused: What of the first window has not left when the receiver is first heard of: "lapses" (RCCC, EQDS), or
            "stays" (NDP). Default "lapses".
        window: What leaves unasked when a queue pair is new, the most that is asked for at a time, and the most credit
            that is kept: `{ bdp = 1.5 }` in bandwidth-delay products (RCCC), or `{ packets = 50 }`.
    """

    ask: Ask | None = None
    cost: GrantCost | None = None
    demand: Demand | None = None
    fabric: FabricControl | None = None
    grant: int | None = None
    idle: IdleGrants | None = None
    pace: float | None = None
    quantum: Quantum | None = None
    unused: Unused | None = None
    window: Window | None = None


@dataclass(kw_only=True, repr=False)
class Drill(Table):
    """Parameters of DRILL.

    Args:
        memory: Best queues remembered from the packets before. Default 1 (DRILL(2,1)). 0 or 1.
        samples: Queues looked at for each packet, chosen at random. Default 2 (DRILL(2,1), the choice of its paper).
        variant: Which DRILL: "published" (default), or "conweave-ns3", as that simulator has it.
    """

    memory: int | None = None
    samples: int | None = None
    variant: DrillVariant | None = None


@dataclass(kw_only=True, repr=False)
class Ecn(Table):
    """RED on the instantaneous egress queue, marking instead of dropping: below `kmin` never, then linearly up to
    `pmax` at `kmax`, above `kmax` always (DCQCN, SIGCOMM'15).

    Args:
        at: When the queue is looked at. Default on leaving, as HPCC's switch does.
        enabled: Whether switches mark. Default true.
        kmax: Upper threshold at `reference_rate`. Default 1600 KB at 100G (HPCC run.py: 16 KB a Gb/s).
        kmin: Lower threshold at `reference_rate`. Default 400 KB at 100G (HPCC run.py: 4 KB a Gb/s).
        last_hop: Whether ports that lead to hosts mark, too. Default "mark"; "leave" where receivers grant credit and
            see to their own link themselves (Ultra Ethernet with RCCC).
        pmax: Marking probability at `kmax`. Default 0.2 (HPCC run.py).
        reference_rate: Rate of a port at which `kmin` and `kmax` hold. Default 100 Gb/s.
        thresholds: Whether ports of other rates scale the thresholds. Default they do.
    """

    at: MarkAt | None = None
    enabled: bool | None = None
    kmax: Size | None = None
    kmin: Size | None = None
    last_hop: LastHop | None = None
    pmax: float | None = None
    reference_rate: Rate | None = None
    thresholds: Thresholds | None = None


@dataclass(kw_only=True, repr=False)
class External(Table):
    """External switches: those that join data centres.

    Args:
        buffer: Packet memory shared by all ports of an external switch. Default 512 MB: a pause of 500 us at 400 Gb/s
            is 25 MB, and nothing is paused across the WAN.
        ndt: Near-destination throttling. Absent: off.
        nsf: Near-source feedback. Absent: off.
    """

    buffer: Size | None = None
    ndt: Ndt | None = None
    nsf: Nsf | None = None


@dataclass(kw_only=True, repr=False)
class PacedFabricControl(Table):
    """All it grants is paced at a share of its link, which marks and trims lower and their absence raises.

    Args:
        paced: How the share of its link follows from what a receiver sees: uet-htsim's control of oversubscribed trees
            (`oversubscribed_cc`, 40ccb05), whose numbers are the defaults.
    """

    paced: FabricPace | None = None


@dataclass(kw_only=True, repr=False)
class FabricPace(Table):
    """How the share of its link follows from what a receiver sees: uet-htsim's control of oversubscribed trees
    (`oversubscribed_cc`, 40ccb05), whose numbers are the defaults.

    Args:
        decrease: Of the share, for each marked packet in one above `marked` (0.5). Default 0.5.
        every_rtts: Round trips of the idle network from one change to the next, give or take a quarter at random (1.5).
            Default 1.5.
        gain: Weight of the newest in that average (0.5). Default 0.5.
        increase: Added to the share when there was neither too much marked nor anything trimmed before the last hop
            (0.01); twice as much each time in a row while nothing at all is marked. Default 0.01.
        least: The least share, above 0, at most 1: 0.9 over the oversubscription, as uet-htsim takes it (0.225, for
            4:1). Far below that receivers grant too little: at 0.01 a permutation over 4:1 takes twice as long. Default
            0.225.
        marked: Share of marked packets that is still good, averaged (0.3). Default 0.3.
    """

    decrease: float | None = None
    every_rtts: float | None = None
    gain: float | None = None
    increase: float | None = None
    least: float | None = None
    marked: float | None = None


@dataclass(kw_only=True, repr=False)
class LinkDownFault(Table):
    """Both directions of a link lose everything, queued or in flight, from `at` on (until `up_at`, if given).

    Args:
        at: When.
        link: Link, named by its ends: "tor0-agg1".
        up_at: When it comes back.
    """

    kind: ClassVar[str | None] = "link-down"
    at: Time
    link: str
    up_at: Time | None = None


@dataclass(kw_only=True, repr=False)
class LinkFlapFault(Table):
    """A link goes down and up again and again.

    Args:
        at: First time down.
        down_for: How long it is down each time.
        link: Link, named by its ends.
        times: How often.
        up_for: How long it is up in between.
    """

    kind: ClassVar[str | None] = "link-flap"
    at: Time
    down_for: Time
    link: str
    times: int
    up_for: Time


@dataclass(kw_only=True, repr=False)
class LinkRateFault(Table):
    """A link runs at another rate.

    Args:
        at: When.
        link: Link, named by its ends.
        rate: The rate from then on; above 0.
        until: When the old rate returns.
    """

    kind: ClassVar[str | None] = "link-rate"
    at: Time
    link: str
    rate: Rate
    until: Time | None = None


@dataclass(kw_only=True, repr=False)
class LinkDelayFault(Table):
    """A link has another propagation delay. Packets on a link never overtake each other.

    Args:
        at: When.
        delay: The delay from then on.
        link: Link, named by its ends.
        until: When the old delay returns.
    """

    kind: ClassVar[str | None] = "link-delay"
    at: Time
    delay: Time
    link: str
    until: Time | None = None


@dataclass(kw_only=True, repr=False)
class LinkLossFault(Table):
    """Packets vanish from a link with a probability each (Bernoulli).

    Args:
        link: Link, named by its ends.
        probability: Probability a packet, 0 to 1.
        at: When. Default: from the start.
        until: When it ends.
    """

    kind: ClassVar[str | None] = "link-loss"
    link: str
    probability: float
    at: Time | None = None
    until: Time | None = None


@dataclass(kw_only=True, repr=False)
class LinkCorruptionFault(Table):
    """Packets arrive with a bad checksum with a probability each and are dropped by who receives them.

    Args:
        link: Link, named by its ends.
        probability: Probability a packet, 0 to 1.
        at: When. Default: from the start.
        until: When it ends.
    """

    kind: ClassVar[str | None] = "link-corruption"
    link: str
    probability: float
    at: Time | None = None
    until: Time | None = None


@dataclass(kw_only=True, repr=False)
class SwitchDownFault(Table):
    """All links of a switch go down.

    Args:
        at: When.
        switch: Its name.
        up_at: When it comes back, with empty queues.
    """

    kind: ClassVar[str | None] = "switch-down"
    at: Time
    switch: str
    up_at: Time | None = None


@dataclass(kw_only=True, repr=False)
class PauseStormFault(Table):
    """A broken NIC that sends pause frames without end for all data classes of its link.

    Args:
        at: When.
        host: The host, by name.
        until: When it stops.
    """

    kind: ClassVar[str | None] = "pause-storm"
    at: Time
    host: str
    until: Time | None = None


@dataclass(kw_only=True, repr=False)
class FlowSpec(Table):
    """One flow of an inline list.

    Args:
        dst: Receiving host.
        size: Payload, 1 B to 4 GiB.
        src: Sending host.
        after: Ids of flows that must be over before, as the sender of this one knows: delivered, where it is their
            receiver; acknowledged, where it is their sender; delivered and a notification later
            (`network.task_notification`) elsewhere.
        connection: Flows with the same number between the same hosts share a connection. Default: one of its own.
        delay: Time from the last of them to this flow. Default "0s".
        id: A name by which other flows refer to this one.
        start: Earliest start, since the start of the workload. Default "0s".
    """

    dst: int
    size: Size
    src: int
    after: list[str] | None = None
    connection: int | None = None
    delay: Time | None = None
    id: str | None = None
    start: Time | None = None


@dataclass(kw_only=True, repr=False)
class ForwardingConfig(Table):
    """Load balancing in switches: how one chooses among equal-cost next hops.

    Args:
        conga: Parameters of "conga".
        conweave: Parameters of "conweave".
        drill: Parameters of "drill".
        letflow: Parameters of "letflow".
        ugal: Parameters of "ugal".
        wcmp: Parameters of "wcmp" and "weighted-rps".
    """

    conga: Conga | None = None
    conweave: ConWeave | None = None
    drill: Drill | None = None
    letflow: LetFlow | None = None
    ugal: Ugal | None = None
    wcmp: Wcmp | None = None


@dataclass(kw_only=True, repr=False)
class PacketGrantCost(Table):
    """A full packet and so many bytes.

    Args:
        packet: a size with its unit, such as "8MB" or "4KiB"
    """

    packet: Size | None = None


@dataclass(kw_only=True, repr=False)
class HopScaling(Table):
    """Topology-based scaling of the target (section 3.2): `base + hops * per_hop`.

    Args:
        base: What every target has. Default 200 ns (Reflex, section II-C).
        hops: What counts as a hop. The papers do not say. Default "nodes_rt".
        per_hop: What each hop adds. Default 1 us (Reflex, section II-C).
    """

    base: Time | None = None
    hops: SwiftHops | None = None
    per_hop: Time | None = None


@dataclass(kw_only=True, repr=False)
class UniformJitter(Table):
    """Any factor between two is as likely as any other.

    Args:
        high: The most, at most 1000.
        low: The least, above 0.
    """

    kind: ClassVar[str | None] = "uniform"
    high: float
    low: float


@dataclass(kw_only=True, repr=False)
class LogNormalJitter(Table):
    """Factors of mean 1 whose logarithm is normal: most computations are a little faster, some much slower.

    Args:
        sigma: Standard deviation of the logarithm, 0 to 2.
    """

    kind: ClassVar[str | None] = "log-normal"
    sigma: float


@dataclass(kw_only=True, repr=False)
class PausesJitter(Table):
    """Now and then a computation stops for a while: a collection of garbage, a page fault, a restart of clocks.

    Args:
        lasts: How long.
        probability: Share of the computations that do, 0 to 1.
    """

    kind: ClassVar[str | None] = "pauses"
    lasts: Time
    probability: float


@dataclass(kw_only=True, repr=False)
class LetFlow(Table):
    """Parameters of LetFlow.

    Args:
        entries: Flowlets a switch can tell apart: entries of its table, a power of two. Flows whose hashes meet share a
            flowlet. Default 65,536 (the LetFlow paper, section 4).
        gap: A pause longer than this begins a flowlet. Default 50 us (the evaluation of LAPS; that of ConWeave has 100
            us, the LetFlow paper 500 us for slower networks).
    """

    entries: int | None = None
    gap: Time | None = None


@dataclass(kw_only=True, repr=False)
class Scheme(Table):
    """A scheme with changes: fields replace those of the base.

    Args:
        base: Name of the scheme to start from.
        acks: When the receiver acknowledges.
        cnp: Whether and when the receiver sends congestion notifications.
        credit: Receivers grant credit, without which senders send no more than a first window. Absent: they do not.
        forwarding: Load balancing that the switches of a simulated fabric must do for this scheme. Absent: any; where
            no scheme and no `switch.forwarding.kind` says otherwise, they hash.
        name: Name in results. Default: that of `base`, with "*" behind it if anything was changed.
        paths: Paths (UDP source ports) each queue pair may choose from, for each NIC port that leads to its peer.
        policy: When a packet may leave, and on which path.
        ports: Which ports these are.
        queue_pairs: Queue pairs a message is split over evenly (QP scaling); 1 for everything else.
        recovery: Loss recovery.
        reordering: What the receiver says of packets that arrive ahead of a gap.
        service: Whom a queue pair serves: "connection" (default) one process at the other end.
    """

    base: SchemeName | str | None = None
    acks: AckPolicy | None = None
    cnp: CnpPolicy | None = None
    credit: Credit | None = None
    forwarding: Forwarding | None = None
    name: str | None = None
    paths: int | None = None
    policy: Policy | None = None
    ports: Ports | None = None
    queue_pairs: int | None = None
    recovery: Recovery | None = None
    reordering: Reordering | None = None
    service: Service | None = None


@dataclass(kw_only=True, repr=False)
class Ndt(Table):
    """Near-destination throttling.

    Args:
        active_for: A flow is active for this long after its last packet or acknowledgement. More than `max_pause`.
            Default 1 ms.
        alpha: alpha: controlled queues pause while a larger share of the active flows is congested. Default 0.7
            (Reflex, table I).
        forget_after: A flow not seen for this long is forgotten. More than `active_for`. Default 10 ms.
        guards: What keeps the packets of a flow in order when it changes queues. Default "both".
        max_flows: Flows remembered at most; further ones are not throttled. Default 65536.
        max_pause: T_maxpause: a pause ends after this time. Default 500 us (Reflex, table I).
        min_active: No pause with fewer active flows. Default 1, the literal reading: one congested flow out of one is
            paused. 4 or more keep a few flows from being stopped.
        threshold: T_dst_thresh: a flow with a longer round trip from here to its receiver is congested. Absent: the
            idle one and six tenths of it, at least eight packets; on the fabric of Reflex 10 us (table I: 10 us).
        weight: N_throttle: packets of the normal queue for one of the controlled queue, on each port into the site.
            Default 8 (Reflex, table I).
    """

    active_for: Time | None = None
    alpha: float | None = None
    forget_after: Time | None = None
    guards: OrderGuards | None = None
    max_flows: int | None = None
    max_pause: Time | None = None
    min_active: int | None = None
    threshold: Time | None = None
    weight: int | None = None


@dataclass(kw_only=True, repr=False)
class Network(Table):
    """Packets: their size, their headers, and what a sender does about lost ones.

    Args:
        framing: Header bytes on the wire: "rocev2" counts real RoCEv2 over Ethernet (default), "ns3" what the ns-3 RDMA
            simulators count, for comparison with their results.
        mtu: Payload of a full packet, 256 B to 9000 B. Default 4096 B, the largest MTU of InfiniBand verbs.
        nic: NICs and hosts beyond the link: queue-pair contexts, PCIe, cores. Absent: they cost no time.
        retransmission: Retransmission timer of every queue pair.
        side_channel: The channel that datagram queue pairs have beside them.
        source_route: Bytes that packets carry of a route their source has chosen (`routing.kind = "source"`): "none";
            "anchors", the few switches that pin it, 4 bytes each; "hops", the port at every switch, 2 bytes each;
            "segments", 16 bytes for every anchor, as in SRv6; each with 8 bytes around them. Default: "hops", and
            "none" with `framing = "ns3"`.
        task_notification: How long it takes until a host knows what has ended at another one. The receiver of a message
            knows of its delivery at once, the sender with the acknowledgement of its last byte; a task elsewhere that
            waits for either begins this much later, and so does what waits for a barrier. At least the delay of the
            shortest link. Default 1 us (ours: about a small message within a data centre), or the delay of the shortest
            link where that is longer.
        verb: What messages are posted as: "write" (default), as collective libraries do, or "send".
    """

    framing: Framing | None = None
    mtu: Size | None = None
    nic: Nic | None = None
    retransmission: Retransmission | None = None
    side_channel: SideChannel | None = None
    source_route: RouteBytes | None = None
    task_notification: Time | None = None
    verb: Verb | None = None


@dataclass(kw_only=True, repr=False)
class Nic(Table):
    """A NIC and the host behind it: what its queue pairs, the bus between the two, and software cost. Only receivers of
    datagrams have software in the way of their packets; the NIC does the rest by itself.

    Args:
        entry_bytes: Bytes of a work request or completion that cross with each packet. Default 64 B.
        packet_cost: Time a core takes for a datagram that is the next of its flow; a core for each queue pair. Default
            40 ns (ours: two cache misses; the paper has a cost in Fig. 9 but no number).
        pcie_latency: Time across PCIe, one way. Default 2 us (ERD, section 4).
        pcie_rate: Rate of PCIe, above 0. Default 256 Gbit/s (ERD, table 2).
        post_crossings: Crossings before the NIC can send what was posted: 1 (default) if the doorbell carries the work
            request, 3 if the NIC reads it from memory.
        qp_fits: Queue-pair contexts in use up to which the NIC sends at line rate: its cache. Default 1000 (ERD, Fig.
            1a).
        qp_floor: What is left of its rate then, above 0, at most 1; 1.0: contexts cost nothing. Default 0.5 (ERD, Fig.
            1a).
        qp_thrash: Contexts in use from which it is slowest; between the two it slows down with their logarithm. At
            least `qp_fits`. Default 4000 (our reading of the same figure).
        reorder_buffer: Payload of datagrams out of order that the NIC can hold: it puts them in order before software
            sees them, which then pays no `reorder_cost`, and drops what does not fit. Default 0 B: software places
            them, as ERD does.
        reorder_cost: What a datagram out of order takes beyond that. Default 60 ns (ours).
    """

    entry_bytes: int | None = None
    packet_cost: Time | None = None
    pcie_latency: Time | None = None
    pcie_rate: Rate | None = None
    post_crossings: int | None = None
    qp_fits: int | None = None
    qp_floor: float | None = None
    qp_thrash: int | None = None
    reorder_buffer: Size | None = None
    reorder_cost: Time | None = None


@dataclass(kw_only=True, repr=False)
class Nscc(Table):
    """Parameters of [`Nscc`]. Increases are those at 100 Gb/s and 12 us; elsewhere they are larger or smaller by the
    bandwidth-delay product.

    Args:
        apply_packets: Packets acknowledged after which increases are applied (8). Default 8.0.
        collapse_delay: Quick adapt: a queueing delay of more than this many targets is as bad as a trim. Absent: 4;
            with profile "ue1.0" no delay is where switches trim.
        collapse_share: Quick adapt: only if less than this share of the largest window came through (0.125). Default
            0.125.
        constant_increase: eta: packets added once a round trip whatever the delay (0.15). Default 0.15.
        decrease: gamma: decrease for each share of the average delay above the target (0.8). Default 0.8.
        delay_gain: Weight of the newest queueing delay in its average (0.0125). Default 0.0125.
        delay_target: Target of the queueing delay, in idle round-trip times. Absent: 0.75 where switches trim,
            otherwise 1.
        fair_increase: fi: packets added a round trip when unmarked above the target (5). Default 5.0.
        fast_delay: Below it nothing queues (1 us, whatever the network). Default "1us".
        fast_increase: Share of the bytes acknowledged that is added once a window of them has met a delay below
            `fast_delay` (0.25). Default 0.25.
        last_hop_trims: Whether what is trimmed at the last hop takes its bytes from the window: "cut" (default) it
            does; "spare" it does not, where receivers grant credit and see to the last hop themselves.
        max_bdp: Largest window, which is also the first, in bandwidth-delay products (1.5). Default 1.5.
        max_decrease: Most of the window that goes at once (0.5). Default 0.5.
        median_packets: Most packets of the last half window of which the median queueing delay counts for each one's
            (MNSCC: 4), as understood at second hand. Absent: each has its own.
        network_rtt: Round-trip time of the idle network, from which target, largest window and increases are reckoned.
            Absent: that of the pair of hosts. uet-htsim has that of the longest path of the network for every pair.
        profile: Where simulator and specification differ. Default "htsim".
        proportional_increase: alpha: packets added a round trip while nothing queues (4); in proportion to what is left
            of the target. Default 4.0.
    """

    apply_packets: float | None = None
    collapse_delay: float | None = None
    collapse_share: float | None = None
    constant_increase: float | None = None
    decrease: float | None = None
    delay_gain: float | None = None
    delay_target: float | None = None
    fair_increase: float | None = None
    fast_delay: Time | None = None
    fast_increase: float | None = None
    last_hop_trims: LastHopTrims | None = None
    max_bdp: float | None = None
    max_decrease: float | None = None
    median_packets: int | None = None
    network_rtt: Time | None = None
    profile: NsccProfile | None = None
    proportional_increase: float | None = None


@dataclass(kw_only=True, repr=False)
class Nsf(Table):
    """Near-source feedback.

    Args:
        clock_ahead: How far the clock of the switch is ahead of those of the hosts: the time to get there is measured
            with both. Default 0.
        cool_mode: What `cooling` counts. Default "answers".
        cooling: N_cool: answers a flow gets after it has cooled down. Default 5 (Reflex, table I).
        forget_after: A flow not seen for this long is forgotten. Default 10 ms.
        interval: T_interval: least time between answers to a flow. Absent: `threshold` (Reflex, table I: 5 us, as its
            threshold, for TIMELY; 3 us for Swift).
        max_flows: Flows remembered at most; further ones get no answers. Default 65536.
        threshold: T_src_thresh: data that took longer from its NIC to the WAN port is hot. Absent: the idle time and
            six tenths of it, at least eight packets; on the fabric of Reflex 5.2 us (table I: 5 us).
    """

    clock_ahead: Time | None = None
    cool_mode: CoolMode | None = None
    cooling: int | None = None
    forget_after: Time | None = None
    interval: Time | None = None
    max_flows: int | None = None
    threshold: Time | None = None


@dataclass(kw_only=True, repr=False)
class Observe(Table):
    """What is recorded beyond one record for each flow, job and link.

    Args:
        departures: Count data packets as they leave their hosts, in `summary.json`: the times between packets of a
            message, and, where sources choose paths, the bytes by the length of the path. Not for datagram queue pairs.
            Default false.
        flows: Messages that are followed over time, 1000 at most: the largest, of equal ones the first. At each sample
            the rate that the policy allows, the bytes in flight, and how the packets that arrived since the last one
            are spread over paths, or over queue pairs where the scheme has several (the 32 that carried most). Not for
            datagram queue pairs. Default 0.
        follow: Numbers of further messages that are followed over time: column `flow` of flows.parquet, which is the
            same in each run of a scenario. With those of `flows` 1000 at most. Default none.
        interval: Time between samples of queues, links and hosts; doubled whenever there are more than `max_samples` of
            them. Default 5 us; 0s: no samples.
        max_events: Events of each kind kept in full at most; further ones are counted. Default 100000.
        max_samples: Instants kept at most, 2 or more. Default 256.
    """

    departures: bool | None = None
    flows: int | None = None
    follow: list[int] | None = None
    interval: Time | None = None
    max_events: int | None = None
    max_samples: int | None = None


@dataclass(kw_only=True, repr=False)
class OwnPathSet(Table):
    """Those the topology means its sources to use: in a Dragonfly and over rails the minimal path and the detours that
    LAPS uses (IEEE ToN 2026), in a torus and a full mesh those of its dimensions, elsewhere all shortest ones.

    Args:
        max_paths: Paths of a pair at most, 1 to 65535; of more, evenly spaced ones are taken. Default 256.
    """

    kind: ClassVar[str | None] = "own"
    max_paths: int | None = None


@dataclass(kw_only=True, repr=False)
class AllShortestPathSet(Table):
    """All paths of the least number of hops; parallel links count.

    Args:
        max_paths: Paths of a pair at most, 1 to 65535; of more, evenly spaced ones are taken. Default 256.
    """

    kind: ClassVar[str | None] = "all-shortest"
    max_paths: int | None = None


@dataclass(kw_only=True, repr=False)
class KShortestPathSet(Table):
    """The `k` paths of fewest hops that visit no switch twice: for irregular networks. Parallel links count once.

    Args:
        k: Paths of a pair, 1 to 256; fewer where there are no more. Default 8, as in Jellyfish (NSDI 2012, section 4).
        max_extra_hops: Hops that a path may have beyond the shortest one, 0 to 62. Default 4.
    """

    kind: ClassVar[str | None] = "k-shortest"
    k: int | None = None
    max_extra_hops: int | None = None


@dataclass(kw_only=True, repr=False)
class FilePathSet(Table):
    """Paths from a file; see `docs/explicit-paths.md`.

    Args:
        path: The file, relative to the scenario file.
    """

    kind: ClassVar[str | None] = "file"
    path: str


@dataclass(kw_only=True, repr=False)
class LapsPathSet(Table):
    """Those of LAPS's simulator, its `laps-PIT.txt`, with a topology of `kind = "laps"`; see `docs/explicit-paths.md`.

    Args:
        path: The file, relative to the scenario file.
    """

    kind: ClassVar[str | None] = "laps"
    path: str


@dataclass(kw_only=True, repr=False)
class Penalties(Table):
    """Parameters of [`Penalties`].

    Args:
        forgives: Which of the paths passed over on the way to the next packet's is forgiven one. Default "first".
        marked: Penalty of a path for a marked packet (1). Default 1.
        most: The most it can be (15). Default 15.
        refused: For one that was trimmed before the last hop, or found to be lost (4). Default 4.
        silent: For one of which nothing was heard in time (15). Default 15.
    """

    forgives: Forgives | None = None
    marked: int | None = None
    most: int | None = None
    refused: int | None = None
    silent: int | None = None


@dataclass(kw_only=True, repr=False)
class Pfc(Table):
    """Priority flow control (IEEE 802.1Qbb) with a threshold per ingress port and class.

    Args:
        alpha: XOFF when an ingress queue holds more than this share of the free shared buffer. Default 1/8 (HPCC,
            ConWeave).
        deadlock_after: A cycle of paused ports none of which has sent for this long ends the run as a deadlock. Default
            1 ms.
        enabled: Whether data classes are lossless. Default true.
        headroom: Room kept for what arrives after XOFF was sent, per ingress port and class. Absent: computed from the
            link (two propagation delays, a frame at each end, the pause frame itself) which is always enough.
        storm_after: A port paused without a break for this long ends the run as a pause storm. Default 100 ms.
        threshold: Threshold of XOFF of an ingress queue: "dynamic" (default) a share `alpha` of the free shared buffer;
            "static" an equal part of the shared buffer for each port, whatever is free (LAPS).
        xon_gap: XON when it has fallen this far below the XOFF threshold. Default 3 KB (HPCC).
    """

    alpha: float | None = None
    deadlock_after: Time | None = None
    enabled: bool | None = None
    headroom: Size | None = None
    storm_after: Time | None = None
    threshold: PfcThreshold | None = None
    xon_gap: Size | None = None


@dataclass(kw_only=True, repr=False)
class PenaltiesPicker(Table):
    """The same, passing over paths with penalties for marks, trims and losses (Ultra Ethernet's bitmap).

    Args:
        penalties: Parameters of [`Penalties`].
    """

    penalties: Penalties | None = None


@dataclass(kw_only=True, repr=False)
class RecycledPicker(Table):
    """REPS: a path that came back unmarked is taken again, once; without one, any.

    Args:
        recycled: Parameters of [`Recycled`]. Defaults are uet-htsim's.
    """

    recycled: Recycled | None = None


@dataclass(kw_only=True, repr=False)
class MixedPicker(Table):
    """A path that came back unmarked; without one, the bitmap's next (uet-htsim's default).

    Args:
        mixed: Parameters of [`Penalties`].
    """

    mixed: Penalties | None = None


@dataclass(kw_only=True, repr=False)
class PlbPicker(Table):
    """PLB: another path after rounds of congestion.

    Args:
        plb: Parameters of [`Plb`].
    """

    plb: Plb | None = None


@dataclass(kw_only=True, repr=False)
class Plb(Table):
    """Parameters of [`Plb`].

    Args:
        congested_share: K: share of marked packets from which on a round is congested (Linux: 128 of 256). Default 0.5.
        forced_rounds: N: congested rounds in a row after which it changes anyway (Linux: 12). 0: never. Default 12.
        idle_rounds: M: congested rounds in a row after which the path changes if nothing is in flight (Linux: 3).
            Default 3.
        suspend_after_timeout: After a timeout, which changes the path too, congestion changes it no more for this long
            to twice as long, drawn at random (Linux: 60 s): there may be no better path, and a new one each time would
            only reorder. Default "60s".
    """

    congested_share: float | None = None
    forced_rounds: int | None = None
    idle_rounds: int | None = None
    suspend_after_timeout: Time | None = None


@dataclass(kw_only=True, repr=False)
class SplitPolicy(Table):
    """A congestion control and a path picker that do not know of each other.

    Args:
        cc: Congestion control.
        picker: Path picker.
    """

    kind: ClassVar[str | None] = "split"
    cc: Cc | None = None
    picker: Picker | None = None


@dataclass(kw_only=True, repr=False)
class UdmpPolicy(Table):
    """UDMP: delay decides rate and, by ACK clocking, path.

    Args:
        explore: p: probability that a packet explores a random path instead of the one it was released for. Default
            0.01.
        idle_pool_bdp: Repaired: most the pool holds while there is nothing to send, in bandwidth-delay products. Data
            that comes then leaves with all of it at once, on random paths. Default 1.0.
        increase_step: Repaired: additive increase a round trip, as a share of the line rate, while the queue is at its
            target; less when it is longer. A flow's share of a bottleneck settles near this over `queue_gain` and the
            excess delay. Default 0.005.
        inflight_bdp: Repaired: most in flight, in bandwidth-delay products, plus one packet. Default 1.5.
        kick_after: Published: with nothing in flight and nothing heard for this long, one packet is sent. Default
            "100us".
        late: Repaired: how far above the average a round-trip time is whose acknowledgement releases nothing. "by_base"
            (default): a base, the better rule in a data centre. "by_queue": as much as the average is above the base,
            but at least a base; so real hosts have it (`pathweave perf`, the lab), where queues are many base times
            long.
        near: Repaired: a round-trip time within this share of the base above the average still counts as short. Default
            0.05.
        ooo_packets: Delta: an acknowledgement this many packets behind the highest clocks nothing (UDMP, figure 7). 0:
            off. Default 64.
        pool_bdp: Repaired: most the pool holds, in bandwidth-delay products; never less than two packets. Default 0.25.
        queue_gain: Repaired, kappa: weight of the distance from that target, as a share of the round-trip time that the
            rate follows. Default 0.15.
        queue_target_rtts: Repaired: queueing delay the rate settles at, in base round-trip times; four packet times
            more are the grain of queues. Default 0.25.
        rtt_gain: alpha: weight of the newest round-trip time in the average, 0 to 1. Published: small values deadlock
            in incast. Repaired: that average only tells fast paths from slow ones; the rate follows low round-trip
            times. Default 0.125.
        severe_rtt: T_high, in base round-trip times: above it every acknowledgement caps the rate at line x base /
            average (repaired: the low average). Default 3.0.
        step_limit: Repaired: the most the rate changes in a round trip, as a share of itself. Default 0.5.
        variant: The control law: "repaired" (default) or "published".
    """

    kind: ClassVar[str | None] = "udmp"
    explore: float | None = None
    idle_pool_bdp: float | None = None
    increase_step: float | None = None
    inflight_bdp: float | None = None
    kick_after: Time | None = None
    late: UdmpLate | None = None
    near: float | None = None
    ooo_packets: int | None = None
    pool_bdp: float | None = None
    queue_gain: float | None = None
    queue_target_rtts: float | None = None
    rtt_gain: float | None = None
    severe_rtt: float | None = None
    step_limit: float | None = None
    variant: UdmpVariant | None = None


@dataclass(kw_only=True, repr=False)
class MprdmaPolicy(Table):
    """MP-RDMA: an ECN-driven window, ACK-clocked on the path of the acknowledgement.

    Args:
        burst_timer: With nothing to send for this long the flow starts anew, with at most the initial window. 0s: the
            base round-trip time. Default "0s".
        decrease: What a mark does: "half_packet" (default) or "half_window".
        explore: p: probability that a packet explores a random path instead of the acknowledgement's (NSDI 2018: 1 %).
            Default 0.01.
        initial_window_bdp: Initial window, in bandwidth-delay products: a RoCE queue pair starts at line rate. Default
            1.0.
        ooo_packets: Delta: an acknowledgement this many packets behind the highest is out of order (UDMP, figure 7: 64;
            NSDI 2018: 32). 0: off. Default 64.
    """

    kind: ClassVar[str | None] = "mprdma"
    burst_timer: Time | None = None
    decrease: Decrease | None = None
    explore: float | None = None
    initial_window_bdp: float | None = None
    ooo_packets: int | None = None


@dataclass(kw_only=True, repr=False)
class MrcPolicy(Table):
    """MRC: paths in turn, each with a state, and NSCC's window.

    Args:
        active_evs: EVs in use for each NIC port (128; MRC has 128 to 256). The other paths of the queue pair are
            backups. Default 128.
        floor_evs: The least number of EVs in use while paths are up. 8, ours: a plane each of eight. Default 8.
        good_probes: Probes answered in a row that make an EV good again. 3, ours. Default 3.
        nscc: The window.
        planes: Planes of the network, at least as many as NIC ports lead to the peer (1). An EV is in the plane of its
            number modulo that. Default 1.
        probe_rtts: Idle round-trip times from a probe of an EV to the next. 8, ours: long enough for one that meets
            queues to come back. Default 8.0.
    """

    kind: ClassVar[str | None] = "mrc"
    active_evs: int | None = None
    floor_evs: int | None = None
    good_probes: int | None = None
    nscc: Nscc | None = None
    planes: int | None = None
    probe_rtts: float | None = None


@dataclass(kw_only=True, repr=False)
class DlbfPolicy(Table):
    """DLBF: a path until it marks, with copies of what a switch would make late.

    Args:
        available_for: T_avail: a path without marks counts as available for this long after its last acknowledgement.
            Longer than a queue at ECN's upper threshold takes to drain (3,200 KB at 400 Gb/s: 64 us), so that a delay
            older than a full cycle of a queue is not trusted. Default 100 us. The repaired variant takes four round
            trips of the idle network where that is longer: on a slow or wide network no acknowledgement is younger.
        cc: Congestion control. Default: DCQCN with preset `hpcc`, as that of ECMP.
        gap_margin: Added to the delay gap of every packet: delays are half a round trip old when they are used, and a
            growing queue makes the true gap larger. Default 0s (the paper).
        marked_rate: What a marked packet does to the rate. Default "of_its_path".
        on_switch: What leaves on a new path before its data. Default "wait".
        scope: Whose acknowledgements tell a queue pair of its paths. Default "host_pair".
        unavailable_for: T_unavail: a path counts as congested for this long after its last marked acknowledgement.
            Default 200 us, twice `available_for`; and eight round trips in the same way.
        variant: Which reading of the paper: "repaired" (default) or "published".
    """

    kind: ClassVar[str | None] = "dlbf"
    available_for: Time | None = None
    cc: Cc | None = None
    gap_margin: Time | None = None
    marked_rate: MarkedRate | None = None
    on_switch: OnSwitch | None = None
    scope: DlbfScope | None = None
    unavailable_for: Time | None = None
    variant: DlbfVariant | None = None


@dataclass(kw_only=True, repr=False)
class RepsPolicy(Table):
    """REPS: recycled entropies, with a window for delay and ECN.

    Args:
        decrease: gamma: decrease for each share of the delay above the target. Default 0.8.
        delay_gain: Weight of the newest queueing delay in its average. Default 0.0125.
        delay_target: Target of the queueing delay, in base round-trip times. Default 0.75.
        explore_bdp: Packets that explore at the start and after a freeze, in bandwidth-delay products (REPS: 1).
            Default 1.0.
        fair_increase: Packets added a round trip when unmarked but above the target. Default 0.5.
        freeze: After a timeout no path is explored for this long. Default "100us".
        max_bdp: Largest window, and the one to start with, in bandwidth-delay products. Default 1.5.
        max_decrease: Most of the window that goes at once. Default 0.5.
        proportional_increase: Packets added a round trip while nothing queues; less as the delay nears its target.
            Default 4.0.
    """

    kind: ClassVar[str | None] = "reps"
    decrease: float | None = None
    delay_gain: float | None = None
    delay_target: float | None = None
    explore_bdp: float | None = None
    fair_increase: float | None = None
    freeze: Time | None = None
    max_bdp: float | None = None
    max_decrease: float | None = None
    proportional_increase: float | None = None


@dataclass(kw_only=True, repr=False)
class ReflexPolicy(Table):
    """Reflex: a congestion control that flows to other sites feed with echoes of their own site's edge.

    Args:
        cc: Congestion control.
        e2e_mode: What acknowledgements of the peer do. Default "hold".
        edge_cc: Congestion control of flows that the edge answers. Absent: `cc`, with thresholds that fit the way to
            the edge and back: TIMELY's T_low and T_high are 1.6 and 16 times as long as that takes when idle, and the
            gradient's base is just that; Swift's target is worked out for it, and windows grow over it.
        hold_for: With "hold": how long an echo holds good. Absent: 1.6 times as long as the way to the edge and back
            takes when idle, twice the edge's interval between echoes.
        picker: Path picker.
    """

    kind: ClassVar[str | None] = "reflex"
    cc: Cc | None = None
    e2e_mode: E2eMode | None = None
    edge_cc: Cc | None = None
    hold_for: Time | None = None
    picker: Picker | None = None


@dataclass(kw_only=True, repr=False)
class LapsPolicy(Table):
    """LAPS: a softmax over one-way delays, a window, and where switches drop a rate that falls when the fastest path is
    congested.

    Args:
        alpha: beta of the softmax: a path whose delay is 1 / alpha of the unit longer gets 1/e of the share. 0: all
            alike (random spraying); large: the fastest only. The paper gives no value, its code has 1. Default 2.5,
            found on the rows of `pathweave paper matrix` that are there to fit to: with 5 senders crowd on what was
            fastest a moment ago where all paths are alike (permutations 2 to 5 % slower), with 1.5 detours cost 1 to 3
            % more.
        alpha_unit: What that is measured in: of delays around the threshold T the same in either. Default "noise".
        arithmetic: How the weights of paths are computed. Default "float".
        decrease: What a decrease goes down to. Default "to_share".
        fabric_threshold: The threshold of the fabric's longest path, for `window_of = "fabric"`. 0: not known; the
            simulator works it out where sources choose their paths, elsewhere the window is as with "paths". Default
            "0s".
        host_delay: Added to the margin: delay that the hosts themselves cause. None in the simulator; on real hosts
            what the device is configured with. Default "0s".
        limit: What limits a queue pair. Default "auto".
        margin: Where the margin of the base delay is counted. Default "per_switch".
        margin_packets: The margin, in full packets at each switch or link (paper: 5 a switch; code: 1 a link). Default
            5.0.
        variant: Which algorithm, in what the other fields leave open. The named schemes set those to match. Default
            "repaired".
        window_of: Whose threshold the window is two of. Default "paths".
    """

    kind: ClassVar[str | None] = "laps"
    alpha: float | None = None
    alpha_unit: AlphaUnit | None = None
    arithmetic: Arithmetic | None = None
    decrease: RateCut | None = None
    fabric_threshold: Time | None = None
    host_delay: Time | None = None
    limit: Limit | None = None
    margin: Margin | None = None
    margin_packets: float | None = None
    variant: LapsVariant | None = None
    window_of: WindowOf | None = None


@dataclass(kw_only=True, repr=False)
class WeavePolicy(Table):
    """Weave: paths that came back well, and a window on the low round-trip times.

    Args:
        choice: How paths are chosen. "came_back_well" (default): a path whose packets came back quickly again, marked
            or not, else a random one, with one window for all paths; right for fabrics with many similar paths.
            "window_each": the least full path, each with a window of its own, of the first 1,024; right for few paths
            of unequal rates. Real hosts always use "window_each" (`pathweave perf`, the lab, the libfabric provider):
            set it to simulate what they run.
        max_bdp: Largest window, in bandwidth-delay products; the first is two thirds of it. Four hops at 93 % of their
            rate queue by chance alone, and the window has to cover that. Default 1.5.
        target: Queueing delay at which the window stays as it is, in idle round-trip times; the time of two packets on
            the line is added. What is below it costs throughput, what is above it latency. Default 0.3.
    """

    kind: ClassVar[str | None] = "weave"
    choice: PathChoice | None = None
    max_bdp: float | None = None
    target: float | None = None


@dataclass(kw_only=True, repr=False)
class BytesQuantum(Table):
    """So many bytes on the wire.

    Args:
        bytes: a size with its unit, such as "8MB" or "4KiB"
    """

    bytes: Size | None = None


@dataclass(kw_only=True, repr=False)
class GoBackNRecovery(Table):
    """The receiver drops what is out of order and NACKs once a gap; the sender goes back to the gap."""

    kind: ClassVar[str | None] = "go_back_n"


@dataclass(kw_only=True, repr=False)
class GoBackNRepeatedRecovery(Table):
    """As go-back-N, and what arrives ahead of the same gap `repeat` after the last NACK makes another, upon which the
    sender goes back again (conweave-ns3: 4 us).

    Args:
        repeat: Least time between two NACKs of a gap.
    """

    kind: ClassVar[str | None] = "go_back_n_repeated"
    repeat: Time | None = None


@dataclass(kw_only=True, repr=False)
class SelectiveRepeatRecovery(Table):
    """The receiver places packets in any order; the sender resends what is missing.

    Args:
        reorder_packets: A packet counts as lost once one sent this many packets later is acknowledged. 0: never, only
            the timer finds losses; right for lossless fabrics under spraying.
        sender_window_packets: Packets beyond the first gap that the sender sends, at least `window_packets`: more than
            those the receiver drops (UDMP, section III-D). Absent: `window_packets`.
        window_packets: Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed.
            Absent: 4,096, or as many as fill two bandwidth-delay products of the path.
    """

    kind: ClassVar[str | None] = "selective_repeat"
    reorder_packets: int | None = None
    sender_window_packets: int | None = None
    window_packets: int | None = None


@dataclass(kw_only=True, repr=False)
class TimedRecovery(Table):
    """As selective repeat, with losses found by time, learned from round-trip times (in the spirit of RACK and its tail
    loss probe, RFC 8985). What left before a packet that has arrived, and longer ago than any of late took, is lost;
    where switches pause or trim, only if a probe that followed it on its path comes back before it, or after twice that
    time. Where nothing arrives any more, probes follow the oldest packet after that time, after twice that time, and so
    on. Only if nothing answers for the configured retransmission timeout is that a timeout; a message fails after as
    long as the configured timeouts last in all.

    Args:
        reorder_packets: A packet also counts as lost once one sent this many packets later is acknowledged. 0: never.
            Default 0.
        window_packets: Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed.
            Absent: 4,096, or as many as fill two bandwidth-delay products of the path.
    """

    kind: ClassVar[str | None] = "timed"
    reorder_packets: int | None = None
    window_packets: int | None = None


@dataclass(kw_only=True, repr=False)
class TimeoutsRecovery(Table):
    """As selective repeat without a bound, with the timer of MRC's NICs in place of the configured one: 1.024 us times
    a power of two. Apart from what trims tell, only it finds losses.

    Args:
        alike: Timeouts in a row that are alike, 1 to 7; the following ones double.
        exponent: The power of two, 0 to 24. Absent: the least one that makes eight idle round trips.
        retries: Timeouts in a row without progress after which a message fails, 1 to 25; 25: never.
        window_packets: Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed. MRC
            has multiples of 128. Absent: 1,024, or the multiple of 128 that fills two bandwidth-delay products of the
            path.
    """

    kind: ClassVar[str | None] = "timeouts"
    alike: int | None = None
    exponent: int | None = None
    retries: int | None = None
    window_packets: int | None = None


@dataclass(kw_only=True, repr=False)
class SleekRecovery(Table):
    """SLEEK, Ultra Ethernet's recovery without trimming, for congestion controls with a window. Once more packets ahead
    of a gap are acknowledged than 1.5 windows hold, all that is missing of a window from the gap on is sent again, each
    packet once, whatever the window says. Where no acknowledgement comes, a probe follows the data: if it met no queue
    and the data has not arrived, that is lost. The configured retransmission timer is for what no probe tells.

    Args:
        probe_again_rtts: From a probe to the next. Default 5.0.
        probe_rtts: Base round-trip times from an acknowledgement to the probe, while new data waits. Where none does:
            one, and the delay that the congestion control aims at. Default 3.0.
        reorder_packets: The least of that, in packets. Default 5.
        reorder_windows: Packets ahead of a gap that prove it a loss, in windows, of which the product is at most the
            largest window. Default 1.5.
        window_packets: Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed.
            Absent: 4,096, or as many as fill two bandwidth-delay products of the path.
    """

    kind: ClassVar[str | None] = "sleek"
    probe_again_rtts: float | None = None
    probe_rtts: float | None = None
    reorder_packets: int | None = None
    reorder_windows: float | None = None
    window_packets: int | None = None


@dataclass(kw_only=True, repr=False)
class PathOrderRecovery(Table):
    """As selective repeat, with losses found by the order of packets on each path, which keeps it there and back: once
    a packet is acknowledged, what left before it on its path and is not is lost. Wants an acknowledgement for every
    packet. What leaves last on a path is found lost by the path's timer (LAPS, algorithm 3).

    Args:
        rto: How long a path may say nothing.
        rto_min: The least of that: 8 ms where PFC may hold packets up, 100 us where it does not.
        rto_slack: Added to it: 16 packets on the slowest link.
        scope: Whose packets keep one order.
        window_packets: Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed.
            Absent: 4,096, or as many as fill two bandwidth-delay products of the path.
    """

    kind: ClassVar[str | None] = "path_order"
    rto: PathRto | None = None
    rto_min: Time | None = None
    rto_slack: Time | None = None
    scope: RingScope | None = None
    window_packets: int | None = None


@dataclass(kw_only=True, repr=False)
class Recycled(Table):
    """Parameters of [`Recycled`]. Defaults are uet-htsim's.

    Args:
        explore_after: The same when a freeze has ended, which also empties the ring (16). Default 16.
        explore_first: Packets that take any path at the start (0; the paper: a bandwidth-delay product). Default 0.
        freeze: After a timeout only paths that once worked are taken, for this long (10 ms; the paper: 100 us). Default
            "10ms".
        ring: Paths remembered (8). Default 8.
    """

    explore_after: int | None = None
    explore_first: int | None = None
    freeze: Time | None = None
    ring: int | None = None


@dataclass(kw_only=True, repr=False)
class SilentReordering(Table):
    """Nothing: the sender finds losses by itself."""

    kind: ClassVar[str | None] = "silent"


@dataclass(kw_only=True, repr=False)
class ReportedReordering(Table):
    """It names what is missing before them, as lost, unless a notice of the sender explains it. With selective repeat.

    Args:
        clean_notice: What an unmarked notice does besides asking for copies. Default "shield".
        copy_marks: Whether a marked packet that had arrived before makes a congestion notification. Default "ignore".
        high: Notices are no longer welcome when more than this is held ahead of a gap. Default 128 KB, about two
            bandwidth-delay products of 400 Gb/s and 1.3 us; the paper gives none.
        low: And welcome again when less than this is. Default 64 KB.
        repeat: A packet still missing is named again after this time, at the earliest. Default 4 us (ConWeave
            simulator, NACK interval).
        wait: theta: what a notice announced to be late is lost after this time. Default 100 us, a little above the time
            a queue at ECN's upper threshold takes to drain (3,200 KB at 400 Gb/s: 64 us); the paper gives none.
    """

    kind: ClassVar[str | None] = "reported"
    clean_notice: CleanNotice | None = None
    copy_marks: CopyMarks | None = None
    high: Size | None = None
    low: Size | None = None
    repeat: Time | None = None
    wait: Time | None = None


@dataclass(kw_only=True, repr=False)
class Retransmission(Table):
    """Retransmission timer: runs from the last progress of a queue pair, or from its oldest packet in flight if that
    left later.

    Args:
        backoff: Factor by which the time grows with each timeout in a row, 1 to 16. Default 2.
        max_timeout: Longest time between timeouts. Default 64 ms.
        retry_limit: Timeouts in a row without progress after which a message fails. Default 7, the most a RoCE NIC can
            be set to.
        timeout: Time to the first timeout. Default 4 ms (ConWeave's set-ups): longer than a full 32 MB buffer takes to
            drain at 100 Gb/s, so that in a lossless fabric what is late is not taken for lost. A fabric that drops
            wants less.
    """

    backoff: int | None = None
    max_timeout: Time | None = None
    retry_limit: int | None = None
    timeout: Time | None = None


@dataclass(kw_only=True, repr=False)
class EcmpRouting(Table):
    """Switches choose among the shortest ways by a hash; a path is what the source puts into that hash (ECMP)."""

    kind: ClassVar[str | None] = "ecmp"


@dataclass(kw_only=True, repr=False)
class SourceRouting(Table):
    """The source chooses among explicit paths, every hop of them; acknowledgements go back over the same links. A path
    with a dead link loses what takes it, and is reported dead to the schemes after `switch.reroute_after`.

    Args:
        paths: Which paths a pair of hosts has. Default: those the topology means sources to use.
    """

    kind: ClassVar[str | None] = "source"
    paths: PathSet | None = None


@dataclass(kw_only=True, repr=False)
class SenderSwitchRouting(Table):
    """The switch of the sender chooses among explicit paths, by `switch.forwarding`: "letflow", "conga" or "conweave".
    Switches beyond follow what it has chosen; what these do not balance takes a shortest way, by a hash. Paths with a
    dead link are left out after `switch.reroute_after`.

    Args:
        paths: Which paths a pair of hosts has. Default: those the topology means sources to use.
    """

    kind: ClassVar[str | None] = "sender-switch"
    paths: PathSet | None = None


@dataclass(kw_only=True, repr=False)
class NextHopsRouting(Table):
    """Each switch chooses among its next hops, as with "ecmp", but those that the explicit paths of the packet's two
    hosts take there, detours included; a next hop that several of them take counts once. By `switch.forwarding` "ecmp",
    "rps" or "letflow". So the study of LAPS routes ECMP, LetFlow and PLB. Paths with a dead link are left out after
    `switch.reroute_after`.

    Args:
        paths: Which paths a pair of hosts has. Default: those the topology means sources to use.
    """

    kind: ClassVar[str | None] = "next-hops"
    paths: PathSet | None = None


@dataclass(kw_only=True, repr=False)
class Run(Table):
    """When the run ends, besides when every message is delivered and acknowledged or has failed.

    Args:
        calibrate: When a run of flows is measured on packets of its beginning: "auto" (default), where it shows signs
            that it is outside of the model, for some tenths of a second: it is inside, or outside, as that measures;
            "prefix", always, for some seconds: one number is fitted on half of the messages, and the error on the
            others is in the label; "off", never.
        fidelity: What moves through the network: "packet" (default), each of them; or "flow", messages as fluids that
            share links, in a fraction of the time and with an error that docs/flow-fidelity.md tells.
        fold: Ranks of collectives and training jobs ("collective", "simai", "transformer") in a run of flows that the
            network and the job treat alike: "auto" (default) runs them once where there are more than 4 million
            messages and computations, "always" does everywhere, "never" nowhere. Needs one workload without stragglers
            or faults, and a scheme that spreads its packets.
        max_events: Simulator events after which the run ends, with the window (2us at most) in which they are reached.
            Absent: no limit.
        partition: File that says which part of the run each node belongs to, for threads and ranks: a line a node, its
            name and the number of its part, from 0; hosts left out go with their switch. Of no influence on results.
            Absent: by the topology.
        threads: Threads that run it side by side, 1 to 1024; of no influence on results. Absent: as many as the command
            says, or as there are cores for it and hosts enough, 64 a thread.
        until: Simulated time at which the run ends whatever is left to do. Absent: when all is done.
        verify: Check that every byte of every message is delivered exactly once, and stop with an internal error if
            not. Costs time and memory. Default false.
    """

    calibrate: Calibrate | None = None
    fidelity: Fidelity | None = None
    fold: Fold | None = None
    max_events: int | None = None
    partition: str | None = None
    threads: int | None = None
    until: Time | None = None
    verify: bool | None = None


@dataclass(kw_only=True, repr=False)
class ConnectionService(Table):
    """Reliable connection (RC): a queue pair at each end for each pair of processes."""

    kind: ClassVar[str | None] = "connection"


@dataclass(kw_only=True, repr=False)
class SharedReceiveService(Table):
    """Extended reliable connection (XRC, IBTA annex A14): a process has one initiator for each remote node, whose
    processes share receive queues.

    Args:
        node_processes: Processes of a node, 1 to 32768: shared receive queues do not cross virtual machines. Absent:
            all of the host.
    """

    kind: ClassVar[str | None] = "shared_receive"
    node_processes: int | None = None


@dataclass(kw_only=True, repr=False)
class EndToEndService(Table):
    """Reliable datagram with end-to-end contexts (IBTA): a queue pair a process, a context for each remote host, and
    one message at a time on each context.
    """

    kind: ClassVar[str | None] = "end_to_end"


@dataclass(kw_only=True, repr=False)
class DatagramService(Table):
    """Datagrams made reliable in software (ERD): a queue pair a process, for everybody.

    Args:
        announce: When the receiver is told how long a message is: "first_packet" (default) when its first packet
            leaves; "post" when it is posted, so that receivers ask for what waits at the sender.
        delivery: In which order messages of one source are delivered: "unordered" (default) as they become whole;
            "ordered" as they were posted.
        eeth: Whether ERD's header of 9 bytes takes room from the payload: "inside_mtu" (default), 4,087 bytes of
            payload at an MTU of 4,096; or "outside_mtu".
        repair: What the receiver asks for again: "overtaken" (default) what later packets have overtaken on every path,
            and the end of what was sent once the flow has fallen silent; "two_scans" what two scans a period apart
            found missing; "literal" what one scan found, as the paper prints it, late packets included; "never"
            nothing: raw datagrams.
        retries: Which packets leave before which: "first" (default, the paper) retransmissions before all others;
            "half" alternately where both wait; "last" after all others.
        retry_limit: Times in a row that the same packet of a message may be asked for before the message fails, 1 to
            65535. Default 64; the paper has no limit.
        rtt: Which round-trip time that is: "measured" (default) what it takes at present from asking for a packet to
            its arrival, and never less than configured; "configured" the idle network's.
        scan_rtts: Period of the scan in round-trip times, 1 to 100. Default 2.5; the paper says 2 to 3, and no less
            than 1.
        slows: Whom a notification slows down, with congestion control "dcqcn": "destination" (default) the one that
            tells; "queue_pair" all destinations, which share a rate.
        window_packets: Packets beyond the first missing one that the receiver keeps track of, for each source, 64 to
            1048576; further ones are dropped. Default 4096: 1.3 ms of full packets at 100 Gb/s.
    """

    kind: ClassVar[str | None] = "datagram"
    announce: Announce | None = None
    delivery: Delivery | None = None
    eeth: EethPlace | None = None
    repair: Repair | None = None
    retries: RetryOrder | None = None
    retry_limit: int | None = None
    rtt: RttSource | None = None
    scan_rtts: float | None = None
    slows: Slows | None = None
    window_packets: int | None = None


@dataclass(kw_only=True, repr=False)
class SideChannel(Table):
    """The reliable channel between each two hosts that datagram queue pairs have beside them: TCP connections, modelled
    as a delay and a rate; their packets do not cross the fabric.

    Args:
        rate: Rate of each connection, above 0. Default 1 Gbit/s (ours).
        stack: Time in the stack of each end, beside that of the path when it is idle. Default 5 us (ours: what a
            kernel's TCP takes).
    """

    rate: Rate | None = None
    stack: Time | None = None


@dataclass(kw_only=True, repr=False)
class Slow(Table):
    """Hosts that compute slower than the others, or faster.

    Args:
        factor: How many times as long their computations take: 2 for a GPU at half its clock. Above 0, at most 1000.
        hosts: Which hosts, as the workload numbers them.
    """

    factor: float
    hosts: list[int]


@dataclass(kw_only=True, repr=False)
class Stragglers(Table):
    """How long computations really take. A workload gives each computation its time; here are hosts that take longer,
    and what makes computations vary. All of it multiplies.

    Args:
        jitter: How computations vary, each by a draw of its own from the stream of its host.
        slow: Hosts that compute slower than the others, or faster.
        trace: A file of measured factors: a line "host,factor" each. A host with several uses one for each of its
            computations in turn, from the first again after the last; a host without one has 1. Lines that begin with #
            do not count.
    """

    jitter: Jitter | None = None
    slow: list[Slow] | None = None
    trace: str | None = None


@dataclass(kw_only=True, repr=False)
class Swift(Table):
    """Parameters of [`Swift`].

    Args:
        decrease: beta: decrease for each share of the delay above the target (SIGCOMM 2020: 0.8). Default 0.8.
        hop_scaling: Makes the target of a base and a term for each hop instead of idle round-trip time and
            `queue_target`. Absent: the latter. Not used where the number of hops is not known, on real hosts.
        increase: ai: packets added a round trip (SIGCOMM 2020: 1). Default 1.0.
        increase_over: Which round trip that is, where delays are measured over a part of the way only. Default "path".
        max_bdp: Largest window, in bandwidth-delay products; the flow starts with one. Default 2.0.
        max_decrease: max_mdf: most of the window that goes at once (SIGCOMM 2020: 0.5). Default 0.5.
        min_packets: Smallest window, in packets (SIGCOMM 2020: 0.001). Default 0.001.
        min_rate: The window never falls below what this rate needs over the idle path. Absent: a thousandth of the
            line. Over a WAN of a millisecond `min_packets` is a packet a second, from which no window recovers. 0bps:
            no such floor.
        queue_target: Queueing delay allowed to a large window. Under spraying it must cover the spread between paths,
            or every round trip holds a packet above the target. Absent: what 32 full packets take on a port of the
            host, which is the grain of queues whatever the rate: 10.8 us with packets of 4,096 B at 100 Gb/s.
        scaling_max_packets: fs_max_cwnd: window, in packets, from which on it adds nothing (SIGCOMM 2020: 100). Default
            100.0.
        scaling_min_packets: fs_min_cwnd: window, in packets, at and below which flow scaling adds all of its range
            (SIGCOMM 2020: 0.1). Default 0.1.
        scaling_range: fs_range: the most that flow scaling adds to the target. Absent: four times the queueing delay
            allowed to a large window (htsim: five times the base target).
    """

    decrease: float | None = None
    hop_scaling: HopScaling | None = None
    increase: float | None = None
    increase_over: IncreaseOver | None = None
    max_bdp: float | None = None
    max_decrease: float | None = None
    min_packets: float | None = None
    min_rate: Rate | None = None
    queue_target: Time | None = None
    scaling_max_packets: float | None = None
    scaling_min_packets: float | None = None
    scaling_range: Time | None = None


@dataclass(kw_only=True, repr=False)
class Switch(Table):
    """All switches of a fabric.

    Args:
        acks: Class of acknowledgements and other control packets. Default "control".
        buffer: Packet memory shared by all ports of a switch. Default 32 MB (UDMP, DLBF and HPCC set-ups).
        ecn: Congestion marking of the data classes.
        egress_alpha: Share of the free buffer one lossy egress queue may fill before packets are dropped. Default 1.0
            (dynamic threshold of Choudhury and Hahne, 1998). Where switches trim, `trim.queue` takes its place.
        external: External switches, which join data centres: their buffer, and what they do beyond switching.
        forwarding: Load balancing in the switches.
        hash: Seeds of the hash that chooses among equal-cost next hops, where no other load balancing does. Default
            "seeded".
        pfc: Priority flow control for the data classes.
        reroute_after: Time from a link or switch failing (or coming back) until routing everywhere avoids (or uses) it
            again. Default 1 ms; until then packets for a dead link are lost.
        trim: Trimming of data packets for which a port has no room.
        weights: Data classes and their weights: class i gets `weights[i]` shares of what strict-priority control
            traffic leaves. Default one class. At most 7.
    """

    acks: AckClass | None = None
    buffer: Size | None = None
    ecn: Ecn | None = None
    egress_alpha: float | None = None
    external: External | None = None
    forwarding: ForwardingConfig | None = None
    hash: EcmpHash | None = None
    pfc: Pfc | None = None
    reroute_after: Time | None = None
    trim: Trim | None = None
    weights: list[int] | None = None


@dataclass(kw_only=True, repr=False)
class StarTopology(Table):
    """Hosts at one switch: every flow takes two hops.

    Args:
        hosts: Hosts.
        delay: One-way propagation delay of every link. Default: UDMP, section V-A.
        error_rate: Probability that a link loses a packet, on every link. Default 0.0.
        rate: Rate of every link. Default: UDMP, section V-A.
    """

    kind: ClassVar[str | None] = "star"
    hosts: int
    delay: Time | None = None
    error_rate: float | None = None
    rate: Rate | None = None


@dataclass(kw_only=True, repr=False)
class DumbbellTopology(Table):
    """Hosts at two switches, "left" and "right", that share a bottleneck: flows across take three hops.

    Args:
        left_hosts: Hosts at the left switch, numbered from 0.
        bottleneck_delay: One-way propagation delay of the bottleneck. Default: `host_delay`.
        bottleneck_links: Parallel links of the bottleneck. Default 1.
        bottleneck_rate: Rate of each link of the bottleneck. Default: `host_rate`.
        error_rate: Probability that a link loses a packet, on every link. Default 0.0.
        host_delay: One-way propagation delay of the links of hosts. Default: UDMP, section V-A.
        host_rate: Rate of the links of hosts. Default: UDMP, section V-A.
        right_hosts: Hosts at the right switch, numbered after the left ones. Default: `left_hosts`.
    """

    kind: ClassVar[str | None] = "dumbbell"
    left_hosts: int
    bottleneck_delay: Time | None = None
    bottleneck_links: int | None = None
    bottleneck_rate: Rate | None = None
    error_rate: float | None = None
    host_delay: Time | None = None
    host_rate: Rate | None = None
    right_hosts: int | None = None


@dataclass(kw_only=True, repr=False)
class LeafSpineTopology(Table):
    """Two-tier Clos: every leaf connects to every spine.

    Args:
        hosts_per_leaf: Hosts at each leaf.
        leaves: Leaf switches.
        spines: Spine switches.
        error_rate: Probability that a link loses a packet, on every link. Default 0.0.
        host_delay: One-way propagation delay between hosts and leaves. Default: UDMP, section V-A.
        host_rate: Rate of the links between hosts and leaves. Default: UDMP, section V-A.
        leaf_spine_links: Parallel links between each leaf and each spine. Default 1.
        spine_delay: One-way propagation delay between leaves and spines. Default: `host_delay`.
        spine_rate: Rate of the links between leaves and spines. Default: `host_rate`.
    """

    kind: ClassVar[str | None] = "leaf-spine"
    hosts_per_leaf: int
    leaves: int
    spines: int
    error_rate: float | None = None
    host_delay: Time | None = None
    host_rate: Rate | None = None
    leaf_spine_links: int | None = None
    spine_delay: Time | None = None
    spine_rate: Rate | None = None


@dataclass(kw_only=True, repr=False)
class FatTreeTopology(Table):
    """Three-tier fat tree. Give `k`, or `pods`, `tors_per_pod`, `hosts_per_tor`, `aggs_per_pod` and `cores`.

    Args:
        agg_core_delay: One-way propagation delay between aggregation switches and cores. Default: `tor_agg_delay`.
        agg_core_links: Parallel links between each aggregation switch and each of its cores. Default 1.
        agg_core_rate: Rate of the links between aggregation switches and cores. Default: `tor_agg_rate`.
        aggs_per_pod: Aggregation switches in each pod.
        core_wiring: Which cores an aggregation switch connects to. Default "planes".
        cores: Core switches in all. With `core_wiring = "planes"` a multiple of `aggs_per_pod`.
        error_rate: Probability that a link loses a packet, on every link. Default 0.0.
        host_delay: One-way propagation delay of the links between hosts and ToRs. Default: UDMP, section V-A.
        host_rate: Rate of the links between hosts and ToRs. Default: UDMP, section V-A.
        hosts_per_tor: Hosts at each ToR switch.
        k: Shorthand for the k-ary fat tree (Al-Fares et al., SIGCOMM 2008, section 3): k pods of k/2 ToRs with k/2
            hosts each and k/2 aggregation switches, (k/2)^2 cores. Even. Not together with the five counts.
        oversubscription: Capacity of an aggregation switch towards its ToRs over that towards its cores, at least 1 (1:
            none). Sets `agg_core_rate`, so not together with it. Fewer `cores` oversubscribe by fewer paths instead.
        pods: Pods.
        tor_agg_delay: One-way propagation delay between ToRs and aggregation switches. Default: `host_delay`.
        tor_agg_links: Parallel links between each ToR and each aggregation switch of its pod. Default 1.
        tor_agg_rate: Rate of the links between ToRs and aggregation switches. Default: `host_rate`.
        tors_per_pod: ToR switches in each pod.
    """

    kind: ClassVar[str | None] = "fat-tree"
    agg_core_delay: Time | None = None
    agg_core_links: int | None = None
    agg_core_rate: Rate | None = None
    aggs_per_pod: int | None = None
    core_wiring: CoreWiring | None = None
    cores: int | None = None
    error_rate: float | None = None
    host_delay: Time | None = None
    host_rate: Rate | None = None
    hosts_per_tor: int | None = None
    k: int | None = None
    oversubscription: float | None = None
    pods: int | None = None
    tor_agg_delay: Time | None = None
    tor_agg_links: int | None = None
    tor_agg_rate: Rate | None = None
    tors_per_pod: int | None = None


@dataclass(kw_only=True, repr=False)
class CrossDcTopology(Table):
    """Two or more data centres (sites) of any kind. External switches stand on the top switches of each site; those of
    two sites are joined by WAN links, every site with every other. Nodes of site i are called "dc{i}.": "dc0.leaf3",
    and its external switches "dc0.esw0". Hosts are numbered through, site by site.

    Args:
        site: What is inside each site: a topology of any kind. One for all sites, or one for each.
        edge_delay: One-way propagation delay of those links. Default 1 us (Reflex, section II-C).
        edge_rate: Rate of each link between a top switch of the site and an external switch. Default 100 Gb/s (Reflex,
            section II-C).
        external_switches: External switches of each site. The k-th of one site is joined to the k-th of every other.
            Default 1.
        sites: Number of sites, 2 to 64. Default: as many as there are in `site`.
        wan_delay: One-way propagation delay of the WAN links. Default 500 us (Reflex, section II-C).
        wan_links: Parallel WAN links between two external switches. Default 1.
        wan_pfc: Whether external switches pause each other across the WAN. Default they do not: the headroom of such a
            link is twice its delay at its full rate, 200 MB for the defaults. Their buffers must then take what comes.
        wan_rate: Rate of each WAN link. Default 1.6 Tb/s (Reflex, section II-C).
    """

    kind: ClassVar[str | None] = "cross-dc"
    site: list[Topology]
    edge_delay: Time | None = None
    edge_rate: Rate | None = None
    external_switches: int | None = None
    sites: int | None = None
    wan_delay: Time | None = None
    wan_links: int | None = None
    wan_pfc: bool | None = None
    wan_rate: Rate | None = None


@dataclass(kw_only=True, repr=False)
class DragonflyTopology(Table):
    """Dragonfly (Kim et al., ISCA 2008): in a group every switch is linked to every other, and each two groups are
    linked by `links_between_groups` links, spread evenly over their switches. A path leads to the other group directly,
    or over one more group; inside a group directly, or over one more switch.

    Args:
        groups: Groups, 2 or more.
        hosts_per_switch: Hosts at each switch.
        switches_per_group: Switches in each group.
        error_rate: Probability that a link loses a packet, on every link. Default 0.0.
        global_delay: One-way propagation delay between groups. Default: `local_delay`.
        global_rate: Rate of the links between groups. Default: `local_rate`.
        host_delay: One-way propagation delay between hosts and switches. Default: LAPS, section IV.
        host_rate: Rate of the links between hosts and switches. Default: LAPS, section IV.
        links_between_groups: Links between each two groups. Default 1.
        local_delay: One-way propagation delay inside a group. Default: `host_delay`.
        local_rate: Rate of the links inside a group. Default: `host_rate`.
    """

    kind: ClassVar[str | None] = "dragonfly"
    groups: int
    hosts_per_switch: int
    switches_per_group: int
    error_rate: float | None = None
    global_delay: Time | None = None
    global_rate: Rate | None = None
    host_delay: Time | None = None
    host_rate: Rate | None = None
    links_between_groups: int | None = None
    local_delay: Time | None = None
    local_rate: Rate | None = None


@dataclass(kw_only=True, repr=False)
class RailTopology(Table):
    """Rail-only network: the GPUs of a cluster share a scale-up switch (as NVLink's), and the GPUs of one index in all
    clusters share a rail switch. GPUs forward, so a GPU is a switch with one host behind it. A path to another cluster
    takes one of the rails, with a hop over the scale-up switch at either end where the rail is not the GPU's own.

    Args:
        clusters: Clusters: GPUs that share a scale-up switch.
        gpus_per_cluster: GPUs in each cluster, and so rails.
        error_rate: Probability that a link loses a packet, on every link. Default 0.0.
        gpu_queues: Marking (ECN) in the queues of GPUs. Default "unmarked": a GPU holds its own traffic back, as a NIC
            does.
        host_delay: One-way propagation delay between a host and its GPU's ports. Default: LAPS, section IV.
        host_rate: Rate between a host and its GPU's ports. Default: `rail_rate` and `scale_up_rate` together, all the
            GPU can send (as the evaluation of LAPS was run).
        rail_delay: One-way propagation delay to rail switches. Default: `host_delay`.
        rail_rate: Rate of the links to rail switches. Default: LAPS, section IV.
        scale_up_delay: One-way propagation delay to scale-up switches. Default: `host_delay`.
        scale_up_rate: Rate of the links to scale-up switches. Default: `rail_rate`.
    """

    kind: ClassVar[str | None] = "rail"
    clusters: int
    gpus_per_cluster: int
    error_rate: float | None = None
    gpu_queues: GpuQueues | None = None
    host_delay: Time | None = None
    host_rate: Rate | None = None
    rail_delay: Time | None = None
    rail_rate: Rate | None = None
    scale_up_delay: Time | None = None
    scale_up_rate: Rate | None = None


@dataclass(kw_only=True, repr=False)
class TorusTopology(Table):
    """Torus of one to three dimensions, or mesh: switches on a grid, each linked to its neighbours. Its paths go
    through one dimension after the other, in any order of them, the short way round first; in a torus each dimension
    also the long way. Lossless traffic can deadlock around a ring, whatever its routes (there are no dateline channels
    here); the watch names the cycle. A mesh does not while all paths take its dimensions in one order (`max_paths` =
    1).

    Args:
        size: Switches along each dimension, one to three numbers, such as [4, 4].
        ends: Whether the ends of each dimension are linked. Default "joined".
        error_rate: Probability that a link loses a packet, on every link. Default 0.0.
        host_delay: One-way propagation delay between hosts and switches. Default: UDMP, section V-A.
        host_rate: Rate of the links between hosts and switches. Default: UDMP, section V-A.
        hosts_per_switch: Hosts at each switch. Default 1.
        switch_delay: One-way propagation delay between switches. Default: `host_delay`.
        switch_rate: Rate of the links between switches. Default: `host_rate`.
    """

    kind: ClassVar[str | None] = "torus"
    size: list[int]
    ends: TorusEnds | None = None
    error_rate: float | None = None
    host_delay: Time | None = None
    host_rate: Rate | None = None
    hosts_per_switch: int | None = None
    switch_delay: Time | None = None
    switch_rate: Rate | None = None


@dataclass(kw_only=True, repr=False)
class FullMeshTopology(Table):
    """Full mesh of one to three dimensions, as UB-Mesh builds its racks (Liao et al., Hot Chips 2025): every two
    switches that differ in one coordinate are linked. Its paths take one hop in each dimension that differs, in any
    order of them, or make one detour over another switch in one of these dimensions.

    Args:
        size: Switches along each dimension, one to three numbers, such as [8, 8].
        error_rate: Probability that a link loses a packet, on every link. Default 0.0.
        host_delay: One-way propagation delay between hosts and switches. Default: UDMP, section V-A.
        host_rate: Rate of the links between hosts and switches. Default: UDMP, section V-A.
        hosts_per_switch: Hosts at each switch. Default 1.
        switch_delay: One-way propagation delay between switches. Default: `host_delay`.
        switch_rate: Rate of the links between switches. Default: `host_rate`.
    """

    kind: ClassVar[str | None] = "full-mesh"
    size: list[int]
    error_rate: float | None = None
    host_delay: Time | None = None
    host_rate: Rate | None = None
    hosts_per_switch: int | None = None
    switch_delay: Time | None = None
    switch_rate: Rate | None = None


@dataclass(kw_only=True, repr=False)
class JellyfishTopology(Table):
    """Random regular graph of switches (Singla et al., NSDI 2012): every switch has `links_per_switch` links to others
    drawn at random. The same `wiring_seed` gives the same network. As explicit paths use `kind = "k-shortest"`.

    Args:
        hosts_per_switch: Hosts at each switch.
        links_per_switch: Links of each switch to others, 3 to 128 and below `switches`. Where the product of both is
            odd, one switch has one less.
        switches: Switches.
        error_rate: Probability that a link loses a packet, on every link. Default 0.0.
        host_delay: One-way propagation delay between hosts and switches. Default: UDMP, section V-A.
        host_rate: Rate of the links between hosts and switches. Default: UDMP, section V-A.
        switch_delay: One-way propagation delay between switches. Default: `host_delay`.
        switch_rate: Rate of the links between switches. Default: `host_rate`.
        wiring_seed: Seed of the wiring, apart from that of the run. Default 1.
    """

    kind: ClassVar[str | None] = "jellyfish"
    hosts_per_switch: int
    links_per_switch: int
    switches: int
    error_rate: float | None = None
    host_delay: Time | None = None
    host_rate: Rate | None = None
    switch_delay: Time | None = None
    switch_rate: Rate | None = None
    wiring_seed: int | None = None


@dataclass(kw_only=True, repr=False)
class FileTopology(Table):
    """A topology file of pathweave (TOML); see `docs/topology-file.md`.

    Args:
        path: The file, relative to the scenario file.
    """

    kind: ClassVar[str | None] = "file"
    path: str


@dataclass(kw_only=True, repr=False)
class HpccTopology(Table):
    """The `topology.txt` of HPCC, ConWeave and other ns-3 simulators.

    Args:
        path: The file, relative to the scenario file.
    """

    kind: ClassVar[str | None] = "hpcc"
    path: str


@dataclass(kw_only=True, repr=False)
class SimaiTopology(Table):
    """A topology of SimAI: GPUs with NVSwitches and a network. A GPU is a host. Routes are shortest by number of links:
    what goes from GPU to GPU of a server takes an NVSwitch, except that two which share a leaf, too, use both where one
    is not more than four times as fast as the other.

    Args:
        path: The file, relative to the scenario file.
    """

    kind: ClassVar[str | None] = "simai"
    path: str


@dataclass(kw_only=True, repr=False)
class HtsimTopology(Table):
    """A `.topo` file of htsim: a folded Clos of two or three tiers. A packet takes half of a switch's
    `Switch_Latency_ns` on the link before it and half on the link behind it. Cores are numbered as in a fat tree of
    ours; queue sizes are not taken over.

    Args:
        path: The file, relative to the scenario file.
    """

    kind: ClassVar[str | None] = "htsim"
    path: str


@dataclass(kw_only=True, repr=False)
class LapsTopology(Table):
    """The `TOPO.txt` of LAPS's simulator.

    Args:
        path: The file, relative to the scenario file.
    """

    kind: ClassVar[str | None] = "laps"
    path: str


@dataclass(kw_only=True, repr=False)
class AstraTopology(Table):
    """The `network.yml` of ASTRA-sim's analytical backend: rings, full meshes and switches in several dimensions.

    Args:
        path: The file, relative to the scenario file.
    """

    kind: ClassVar[str | None] = "astra"
    path: str


@dataclass(kw_only=True, repr=False)
class PresetTopology(Table):
    """A topology preset: further fields replace those of the preset.

    Args:
        preset: Name of the preset to start from.
        agg_core_delay: One-way propagation delay between aggregation switches and cores. Default: `tor_agg_delay`.
        agg_core_links: Parallel links between each aggregation switch and each of its cores. Default 1.
        agg_core_rate: Rate of the links between aggregation switches and cores. Default: `tor_agg_rate`.
        aggs_per_pod: Aggregation switches in each pod.
        bottleneck_delay: One-way propagation delay of the bottleneck. Default: `host_delay`.
        bottleneck_links: Parallel links of the bottleneck. Default 1.
        bottleneck_rate: Rate of each link of the bottleneck. Default: `host_rate`.
        clusters: Clusters: GPUs that share a scale-up switch.
        core_wiring: Which cores an aggregation switch connects to. Default "planes".
        cores: Core switches in all. With `core_wiring = "planes"` a multiple of `aggs_per_pod`.
        delay: One-way propagation delay of every link. Default: UDMP, section V-A.
        edge_delay: One-way propagation delay of those links. Default 1 us (Reflex, section II-C).
        edge_rate: Rate of each link between a top switch of the site and an external switch. Default 100 Gb/s (Reflex,
            section II-C).
        ends: Whether the ends of each dimension are linked. Default "joined".
        error_rate: Probability that a link loses a packet, on every link. Default 0.0.
        external_switches: External switches of each site. The k-th of one site is joined to the k-th of every other.
            Default 1.
        global_delay: One-way propagation delay between groups. Default: `local_delay`.
        global_rate: Rate of the links between groups. Default: `local_rate`.
        gpu_queues: Marking (ECN) in the queues of GPUs. Default "unmarked": a GPU holds its own traffic back, as a NIC
            does.
        gpus_per_cluster: GPUs in each cluster, and so rails.
        groups: Groups, 2 or more.
        host_delay: One-way propagation delay between hosts and switches. Default: UDMP, section V-A.
        host_rate: Rate of the links between hosts and switches. Default: UDMP, section V-A.
        hosts: Hosts.
        hosts_per_leaf: Hosts at each leaf.
        hosts_per_switch: Hosts at each switch.
        hosts_per_tor: Hosts at each ToR switch.
        k: Shorthand for the k-ary fat tree (Al-Fares et al., SIGCOMM 2008, section 3): k pods of k/2 ToRs with k/2
            hosts each and k/2 aggregation switches, (k/2)^2 cores. Even. Not together with the five counts.
        leaf_spine_links: Parallel links between each leaf and each spine. Default 1.
        leaves: Leaf switches.
        left_hosts: Hosts at the left switch, numbered from 0.
        links_between_groups: Links between each two groups. Default 1.
        links_per_switch: Links of each switch to others, 3 to 128 and below `switches`. Where the product of both is
            odd, one switch has one less.
        local_delay: One-way propagation delay inside a group. Default: `host_delay`.
        local_rate: Rate of the links inside a group. Default: `host_rate`.
        name: The name.
        oversubscription: Capacity of an aggregation switch towards its ToRs over that towards its cores, at least 1 (1:
            none). Sets `agg_core_rate`, so not together with it. Fewer `cores` oversubscribe by fewer paths instead.
        path: The file, relative to the scenario file.
        pods: Pods.
        rail_delay: One-way propagation delay to rail switches. Default: `host_delay`.
        rail_rate: Rate of the links to rail switches. Default: LAPS, section IV.
        rate: Rate of every link. Default: UDMP, section V-A.
        right_hosts: Hosts at the right switch, numbered after the left ones. Default: `left_hosts`.
        scale_up_delay: One-way propagation delay to scale-up switches. Default: `host_delay`.
        scale_up_rate: Rate of the links to scale-up switches. Default: `rail_rate`.
        site: What is inside each site: a topology of any kind. One for all sites, or one for each.
        sites: Number of sites, 2 to 64. Default: as many as there are in `site`.
        size: Switches along each dimension, one to three numbers, such as [8, 8].
        spine_delay: One-way propagation delay between leaves and spines. Default: `host_delay`.
        spine_rate: Rate of the links between leaves and spines. Default: `host_rate`.
        spines: Spine switches.
        switch_delay: One-way propagation delay between switches. Default: `host_delay`.
        switch_rate: Rate of the links between switches. Default: `host_rate`.
        switches: Switches.
        switches_per_group: Switches in each group.
        tor_agg_delay: One-way propagation delay between ToRs and aggregation switches. Default: `host_delay`.
        tor_agg_links: Parallel links between each ToR and each aggregation switch of its pod. Default 1.
        tor_agg_rate: Rate of the links between ToRs and aggregation switches. Default: `host_rate`.
        tors_per_pod: ToR switches in each pod.
        wan_delay: One-way propagation delay of the WAN links. Default 500 us (Reflex, section II-C).
        wan_links: Parallel WAN links between two external switches. Default 1.
        wan_pfc: Whether external switches pause each other across the WAN. Default they do not: the headroom of such a
            link is twice its delay at its full rate, 200 MB for the defaults. Their buffers must then take what comes.
        wan_rate: Rate of each WAN link. Default 1.6 Tb/s (Reflex, section II-C).
        wiring_seed: Seed of the wiring, apart from that of the run. Default 1.
    """

    preset: Literal[
        "udmp-320",
        "udmp-320-2to1",
        "udmp-320-4to1",
        "udmp-320-8to1",
        "erd-256",
        "erd-64",
        "erd-16",
        "b1-1024",
        "b2-8192",
        "b3-128",
        "b4-1m",
        "reflex-32",
        "reflex-48",
        "laps-dragonfly",
        "laps-rail",
    ]
    agg_core_delay: Time | None = None
    agg_core_links: int | None = None
    agg_core_rate: Rate | None = None
    aggs_per_pod: int | None = None
    bottleneck_delay: Time | None = None
    bottleneck_links: int | None = None
    bottleneck_rate: Rate | None = None
    clusters: int | None = None
    core_wiring: CoreWiring | None = None
    cores: int | None = None
    delay: Time | None = None
    edge_delay: Time | None = None
    edge_rate: Rate | None = None
    ends: TorusEnds | None = None
    error_rate: float | None = None
    external_switches: int | None = None
    global_delay: Time | None = None
    global_rate: Rate | None = None
    gpu_queues: GpuQueues | None = None
    gpus_per_cluster: int | None = None
    groups: int | None = None
    host_delay: Time | None = None
    host_rate: Rate | None = None
    hosts: int | None = None
    hosts_per_leaf: int | None = None
    hosts_per_switch: int | None = None
    hosts_per_tor: int | None = None
    k: int | None = None
    leaf_spine_links: int | None = None
    leaves: int | None = None
    left_hosts: int | None = None
    links_between_groups: int | None = None
    links_per_switch: int | None = None
    local_delay: Time | None = None
    local_rate: Rate | None = None
    name: str | None = None
    oversubscription: float | None = None
    path: str | None = None
    pods: int | None = None
    rail_delay: Time | None = None
    rail_rate: Rate | None = None
    rate: Rate | None = None
    right_hosts: int | None = None
    scale_up_delay: Time | None = None
    scale_up_rate: Rate | None = None
    site: list[Topology] | None = None
    sites: int | None = None
    size: list[int] | None = None
    spine_delay: Time | None = None
    spine_rate: Rate | None = None
    spines: int | None = None
    switch_delay: Time | None = None
    switch_rate: Rate | None = None
    switches: int | None = None
    switches_per_group: int | None = None
    tor_agg_delay: Time | None = None
    tor_agg_links: int | None = None
    tor_agg_rate: Rate | None = None
    tors_per_pod: int | None = None
    wan_delay: Time | None = None
    wan_links: int | None = None
    wan_pfc: bool | None = None
    wan_rate: Rate | None = None
    wiring_seed: int | None = None


@dataclass(kw_only=True, repr=False)
class Trim(Table):
    """What switches do with data packets for which a port has no room, where they trim instead of dropping. It takes
    the place of `egress_alpha`; with `pfc` there is nothing to trim.

    Args:
        arriving: Share of trims that fall on the packet that arrives; the others fall on the newest one in the queue,
            and the one that arrives takes its place. Default 0.5 (uet-htsim).
        enabled: Whether switches trim. Default false. Needs `pfc.enabled = false`.
        header_queue: Headers and control packets that a port may hold at `reference_rate`; beyond it they are lost.
            Absent: twice `queue` (uet-htsim).
        queue: Data that a port may hold at `reference_rate`, with the packet it sends. Default 178450 B: 43 packets of
            4150 bytes, a bandwidth-delay product of 14 us at 100 Gb/s (uet-htsim).
        reference_rate: Rate of a port at which `queue` and `header_queue` hold. Default 100 Gb/s.
        size: Bytes on the link of what is left of a packet. Default 64 B (uet-htsim); SAI's is 128.
        thresholds: Whether ports of other rates scale them. Default they do.
    """

    arriving: float | None = None
    enabled: bool | None = None
    header_queue: Size | None = None
    queue: Size | None = None
    reference_rate: Rate | None = None
    size: Size | None = None
    thresholds: Thresholds | None = None


@dataclass(kw_only=True, repr=False)
class Ugal(Table):
    """Parameters of UGAL-L.

    Args:
        bias: Bytes by which the port of a detour counts as fuller than it is. Default 0 (the published comparison);
            more keeps packets on the shortest way where little waits anywhere.
    """

    bias: Size | None = None


@dataclass(kw_only=True, repr=False)
class Wcmp(Table):
    """Parameters of weighted next hops. Weights follow the rates of links and links that fail, `switch.reroute_after`
    later.

    Args:
        most_entries: Entries of a switch's table that a set of next hops may take (one for each it takes in any case):
            how finely the capacities are told apart. Default 64 (ours; the paper studies how few will do).
    """

    most_entries: int | None = None


@dataclass(kw_only=True, repr=False)
class BdpWindow(Table):
    """This many bandwidth-delay products (line rate times idle round-trip time)."""

    bdp: float | None = None


@dataclass(kw_only=True, repr=False)
class PacketsWindow(Table):
    """This many full packets."""

    packets: int | None = None


@dataclass(kw_only=True, repr=False)
class WorkloadTable(Table):
    """Traffic that is reported together and carried alike. Several run side by side.

    Args:
        between_sites: How those of its messages are carried that go to another data centre, which are reported as a
            group of their own, "NAME between sites". Default: like the others.
        class_: Traffic class of its data packets: 1 (default) to the number of `switch.weights`.
        connections: Connections of its messages: "of-kind" (default), for most kinds one for each pair of processes;
            "own", one for each message, which begins at the rate of a new connection, as ASTRA-sim has them with ns-3.
        group: Name under which it is reported; its random streams depend on it. Workloads of one name are reported
            together. Default: the kind.
        pool: The `[pools]` entry whose hosts it has, which it then numbers from 0. Default: all hosts.
        role: What it is to the run: "foreground" (default) is what the run waits for and what its figures are about;
            "background" is in its way, is cut off when the foreground is done, and is reported apart.
        scheme: How its messages are carried, as `scheme` of the scenario, which is the default.
        start: When it starts, since the start of the run. Default 0s.
        stragglers: How long its computations really take, where hosts differ: slow ones, jitter, measured factors.
    """

    between_sites: SchemeName | str | Scheme | None = None
    class_: int | None = None
    connections: MessageConnections | None = None
    group: str | None = None
    pool: str | None = None
    role: Role | None = None
    scheme: SchemeName | str | Scheme | None = None
    start: Time | None = None
    stragglers: Stragglers | None = None


@dataclass(kw_only=True, repr=False)
class PermutationWorkload(WorkloadTable):
    """Every host sends to one host and receives from one.

    Args:
        size: Size of a message, 1 B to 4 GiB.
        flows: Only this many of the flows, drawn by seed: that many pairs, in which a host sends at most once and
            receives at most once. Default: all, one from each host.
        pattern: How receivers are assigned. Default "random".
        repetitions: Messages each host sends to its receiver, all posted at the start on one connection. Default 1.
        shift: Distance of sender and receiver in hosts, for `pattern = "shift"` only. Default: half the hosts.
    """

    kind: ClassVar[str | None] = "permutation"
    size: Size
    flows: int | None = None
    pattern: Pattern | None = None
    repetitions: int | None = None
    shift: int | None = None


@dataclass(kw_only=True, repr=False)
class IncastWorkload(WorkloadTable):
    """Many hosts send to one at the same time.

    Args:
        senders: Senders to each receiver (the N of N-to-1), drawn by seed among the other hosts.
        size: Size of each message, 1 B to 4 GiB.
        draw: Which hosts send. Default "independent".
        interval: Time from one event to the next. Default "1ms".
        jitter: Each message starts this much later at most, evenly distributed. Default "0s".
        receiver_hosts: The receivers, as host numbers, instead of a number of random ones.
        receivers: Number of receivers, drawn by seed. Default 1.
        repetitions: How often the event takes place; each time with other senders. Default 1.
    """

    kind: ClassVar[str | None] = "incast"
    senders: int
    size: Size
    draw: Draw | None = None
    interval: Time | None = None
    jitter: Time | None = None
    receiver_hosts: list[int] | None = None
    receivers: int | None = None
    repetitions: int | None = None


@dataclass(kw_only=True, repr=False)
class AllToAllWorkload(WorkloadTable):
    """Every host of a group sends to every other.

    Args:
        size: Size of the message of each ordered pair of hosts or processes, 1 B to 4 GiB.
        compute: Time each host computes after each round; part of the round's job. Default "0s".
        group_size: Hosts in a group. Default: one group of all hosts.
        placement: Which hosts form a group. Default "consecutive".
        processes: Processes of a group, 2 to 32768 a host: process p is on the group's host p modulo their number, and
            each sends to every process on another host. Default: one on each host.
        repetitions: Rounds, one after another: a host begins the next when it has sent and received all of the last.
            Default 1.
        stagger: Step s begins so much times s - 1 later. Messages of one instant are posted in the order of their
            receivers, so that without a window all hosts begin with the first one; with "1ps" they are posted in the
            order of the steps. Default 0s.
        window: Messages a host has outstanding: step s begins once its message of step s - `window` is acknowledged.
            Default: all at once.
    """

    kind: ClassVar[str | None] = "all-to-all"
    size: Size
    compute: Time | None = None
    group_size: int | None = None
    placement: Placement | None = None
    processes: int | None = None
    repetitions: int | None = None
    stagger: Time | None = None
    window: int | None = None


@dataclass(kw_only=True, repr=False)
class RingAllReduceWorkload(WorkloadTable):
    """Groups of hosts add up a vector around a ring, step by step.

    Args:
        size: Size of the vector each host contributes; at least one byte a host of the group.
        compute: Time each host computes after each round; part of the round's job. Default "0s".
        group_size: Hosts in a ring. Default: one ring of all hosts.
        placement: Which hosts form a ring. Default "consecutive".
        repetitions: Rounds, one after another: a host begins the next when its part of the last is over. Default 1.
    """

    kind: ClassVar[str | None] = "ring-all-reduce"
    size: Size
    compute: Time | None = None
    group_size: int | None = None
    placement: Placement | None = None
    repetitions: int | None = None


@dataclass(kw_only=True, repr=False)
class CollectiveWorkload(WorkloadTable):
    """All-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, by several algorithms.

    Args:
        operation: What it achieves.
        size: Its size as nccl-tests count it, see `operation`; at least a byte for each part the algorithm cuts it in.
        algorithm: How it is done. Default: ring; for all-to-all direct.
        chunk: Double binary trees and chains send pieces of at most so many bytes (default 512 KiB: NCCL's buffer of 4
            MiB has 8 steps).
        compute: Time each host computes in each round; part of the round's job. Default "0s".
        compute_when: When it computes. Default "after".
        group_size: Hosts in a group. Default: one group of all hosts.
        groups: The hosts of each group in the order of their ranks, instead of `group_size` and `placement`.
        local_size: Ranks in a row that form a server, for the hierarchical all-reduce (default 8, the GPUs of an HGX
            board).
        placement: Which hosts form a group, and with it their ranks. Default "consecutive".
        repetitions: Rounds, one after another: a host begins the next when its part of the last is over. Default 1.
    """

    kind: ClassVar[str | None] = "collective"
    operation: Operation
    size: Size
    algorithm: Algorithm | None = None
    chunk: Size | None = None
    compute: Time | None = None
    compute_when: ComputeWhen | None = None
    group_size: int | None = None
    groups: list[list[int]] | None = None
    local_size: int | None = None
    placement: Placement | None = None
    repetitions: int | None = None


@dataclass(kw_only=True, repr=False)
class MoeWorkload(WorkloadTable):
    """Mixture-of-experts layers: tokens go to the hosts of their experts and come back.

    Args:
        token_size: Size of a token, such as 14,336 B: 7,168 values of 2 B (DeepSeek-V3).
        tokens: Tokens of each host.
        attention: Time a host computes before it dispatches. Default "0s".
        exchange: Which messages are sent at once. Default "direct".
        expert: Time a host computes between dispatch and combine if it got as many tokens as the mean; others in
            proportion. Default "0s".
        group_size: Hosts in a group. Default: one group of all hosts.
        groups: The hosts of each group, instead of `group_size` and `placement`.
        layers: Layers of an iteration. Default 1.
        placement: Which hosts form a group. Default "consecutive".
        repetitions: Iterations, one after another. Default 1.
        skew: How unequal hosts are: 0 for equal, 1 for the law of Zipf. Default 0.0.
        top_k: Hosts each token goes to, at most the hosts of a group (default 2, as in Mixtral).
    """

    kind: ClassVar[str | None] = "moe"
    token_size: Size
    tokens: int
    attention: Time | None = None
    exchange: Exchange | None = None
    expert: Time | None = None
    group_size: int | None = None
    groups: list[list[int]] | None = None
    layers: int | None = None
    placement: Placement | None = None
    repetitions: int | None = None
    skew: float | None = None
    top_k: int | None = None


@dataclass(kw_only=True, repr=False)
class PipelineWorkload(WorkloadTable):
    """Pipeline-parallel training: stages pass activations on and gradients back.

    Args:
        activation: Size of what a stage passes on for a microbatch, forward and backward: microbatch x sequence x
            hidden size x bytes of a value.
        microbatches: Microbatches of an iteration.
        backward: The same backward; about twice the time, as it multiplies twice. Default "0s".
        forward: Time a stage computes for a microbatch, forward. Default "0s".
        groups: The hosts of each pipeline in the order of its stages, instead of `stages` and `placement`.
        placement: Which hosts form a pipeline. Default "consecutive".
        repetitions: Iterations, one after another. Default 1.
        schedule: In which order stages work. Default "1f1b".
        stages: Stages of a pipeline, 2 or more, a host each. Default: one pipeline of all hosts.
    """

    kind: ClassVar[str | None] = "pipeline"
    activation: Size
    microbatches: int
    backward: Time | None = None
    forward: Time | None = None
    groups: list[list[int]] | None = None
    placement: Placement | None = None
    repetitions: int | None = None
    schedule: Schedule | None = None
    stages: int | None = None


@dataclass(kw_only=True, repr=False)
class TrainingWorkload(WorkloadTable):
    """Data-parallel training: gradients of real models, reduced while backward still computes.

    Args:
        model: The network trained.
        backward: Duration of the backward pass. Default: 109 ms for resnet-50 and 148 ms for vgg-16, two thirds of that
            iteration.
        bucket_cap: A bucket is full once it holds so much or more (default 25 MiB, that of PyTorch); "0B" reduces every
            tensor by itself. Tensors are not split.
        bytes_per_parameter: Bytes of the gradient of one parameter, 1 to 8: 4 in single precision, 2 in half precision.
            Default 4.
        first_bucket: The same for the first bucket of an iteration, which is smaller so that communication begins early
            (default 1 MiB, that of PyTorch).
        forward: Duration of the forward pass. Default: 55 ms for resnet-50 and 74 ms for vgg-16, a third of an
            iteration of 32 images at 195 and 144 images/s (TensorFlow r1 benchmarks, one Tesla P100).
        group_size: Hosts that train together. Default: one group of all hosts.
        iterations: Iterations, one after another. Default 1.
        placement: Which hosts form a group. Default "consecutive".
        scale: Factor above 0 and at most 1 on all sizes and durations, for quick runs: the ratio of computation to
            communication stays, that to latency does not. Default 1.0.
    """

    kind: ClassVar[str | None] = "training"
    model: Model
    backward: Time | None = None
    bucket_cap: Size | None = None
    bytes_per_parameter: int | None = None
    first_bucket: Size | None = None
    forward: Time | None = None
    group_size: int | None = None
    iterations: int | None = None
    placement: Placement | None = None
    scale: float | None = None


@dataclass(kw_only=True, repr=False)
class TransformerWorkload(WorkloadTable):
    """Training of a transformer, dense or with experts: tensor, expert, data and pipeline parallelism from a few
    numbers.

    Args:
        algorithms: How collectives are done.
        bytes_per_gradient: Bytes of the gradient of a parameter, 1 to 8. Default 2.
        bytes_per_value: Bytes of a number of activations and weights, 1 to 8. Default 2.
        ep: GPUs of an expert-parallel group; it must divide the number of replicas and the experts. Default 1.
        experts: Experts of each layer. Default: 1, a dense model.
        feed_forward: What multiplies in the feed-forward part. Default: gated.
        feed_forward_hidden: Size of the vector inside the feed-forward part, or inside an expert.
        gpus: GPUs to run it on, a multiple of TP x PP; the number of data-parallel replicas follows from it. Default:
            all hosts.
        heads: Attention heads; they divide `hidden`.
        hidden: Size of the vector of a token.
        hosts: The host of each GPU. Default: GPU g is on host g.
        iterations: Iterations, one after another. Default 1.
        kv_heads: Heads of keys and values. Default: as many as `heads`.
        layers: Layers.
        micro_batch: Sequences of a microbatch. Default 1.
        microbatches: Microbatches of an iteration, for each replica. Default 1.
        model: A published model, whose numbers are the defaults of `layers` to `feed_forward`. Without one these are
            required, but for `kv_heads`, `experts`, `top_k` and `feed_forward`.
        optimizer: Who keeps the state of the optimizer. Default "distributed".
        pp: Stages of the pipeline; they divide the layers. Default 1.
        scale: Factor above 0 and at most 1 on all sizes and durations, for quick runs: the ratio of computation to
            communication stays, that to latency does not. Default 1.0.
        sequence: Tokens of a sequence.
        tflops: What a GPU achieves, in 10^12 multiplications and additions a second. Default 400, which is 40 % of the
            peak of an H100 and what Llama 3 was trained with (Grattafiori et al., 2024, table 4).
        top_k: Experts that a token goes to. Default: 1.
        tp: GPUs of a tensor-parallel group. Default 1.
        vocabulary: Words.
    """

    kind: ClassVar[str | None] = "transformer"
    algorithms: Algorithms | None = None
    bytes_per_gradient: int | None = None
    bytes_per_value: int | None = None
    ep: int | None = None
    experts: int | None = None
    feed_forward: FeedForward | None = None
    feed_forward_hidden: int | None = None
    gpus: int | None = None
    heads: int | None = None
    hidden: int | None = None
    hosts: list[int] | None = None
    iterations: int | None = None
    kv_heads: int | None = None
    layers: int | None = None
    micro_batch: int | None = None
    microbatches: int | None = None
    model: TransformerModel | None = None
    optimizer: Optimizer | None = None
    pp: int | None = None
    scale: float | None = None
    sequence: int | None = None
    tflops: float | None = None
    top_k: int | None = None
    tp: int | None = None
    vocabulary: int | None = None


@dataclass(kw_only=True, repr=False)
class ChakraWorkload(WorkloadTable):
    """An execution trace of MLCommons Chakra: computations, sends and receives, collectives.

    Args:
        trace: The folder of the trace, or the beginning PREFIX of its files PREFIX.0.et, PREFIX.1.et, ..., relative to
            the scenario.
        algorithms: How collectives are done.
        dims: Sizes of the dimensions of ranks, that of neighbours first, for collectives that the trace narrows by
            `involved_dim`; their product is the number of ranks.
        hosts: The host of each rank. Default: rank r is on host r.
        peak_tflops: Operations a rank computes in a second, in units of 10^12, for computations of which the trace
            gives operations and no duration. Default: they take no time.
        process_groups: A JSON file of the process groups the trace names, as ASTRA-sim has them: `{"name": [ranks],
            ...}`. Default: those that the trace lists itself, as PyTorch's do. A collective without a name is one of
            all ranks, and so is one of group "0" that nobody lists.
    """

    kind: ClassVar[str | None] = "chakra"
    trace: str
    algorithms: Algorithms | None = None
    dims: list[int] | None = None
    hosts: list[int] | None = None
    peak_tflops: float | None = None
    process_groups: str | None = None


@dataclass(kw_only=True, repr=False)
class GoalWorkload(WorkloadTable):
    """A schedule of LogGOPSim or ATLAHS (GOAL): computations, sends and receives that wait for each other.

    Args:
        file: The schedule, relative to the scenario.
        eager: Sends of at most this size are over for their rank as soon as they begin (S of LogGOPSim). Default: none.
        hosts: The host of each rank. Default: rank r is on host r.
    """

    kind: ClassVar[str | None] = "goal"
    file: str
    eager: Size | None = None
    hosts: list[int] | None = None


@dataclass(kw_only=True, repr=False)
class SimaiWorkload(WorkloadTable):
    """A workload file of SimAI: layers with tensor-, expert-, data- and pipeline-parallel groups.

    Args:
        file: The workload file, relative to the scenario, or the name of one that comes with the program:
            "moe-9216gpu".
        algorithms: How collectives are done.
        ep: GPUs of an expert-parallel group; it must divide the number of replicas. Default: that of the file, or else
            1.
        gpus: GPUs to run it on, a multiple of TP x PP; the number of data-parallel replicas follows from it. Default:
            as many as the file names, or else all hosts.
        hosts: The host of each GPU. Default: GPU g is on host g.
        iterations: Iterations, one after another. Default 1.
        microbatches: Microbatches to run, at most those of the file. Default: all.
        pp: Stages of the pipeline. Default: that of the file, or else 1.
        scale: Factor above 0 and at most 1 on all sizes and durations, for quick runs: the ratio of computation to
            communication stays, that to latency does not. Default 1.0.
        tp: GPUs of a tensor-parallel or model-parallel group. Default: that of the file. The sizes of collectives are
            those of the file whatever the groups are.
    """

    kind: ClassVar[str | None] = "simai"
    file: str
    algorithms: Algorithms | None = None
    ep: int | None = None
    gpus: int | None = None
    hosts: list[int] | None = None
    iterations: int | None = None
    microbatches: int | None = None
    pp: int | None = None
    scale: float | None = None
    tp: int | None = None


@dataclass(kw_only=True, repr=False)
class PoissonWorkload(WorkloadTable):
    """Flows between random hosts, sizes from a distribution, at a given load.

    Args:
        load: Offered payload as a share of capacity, above 0; 1 is all of it. Headers come on top.
        sizes: Distribution of sizes: a name (`pathweave list workloads` has them) or a file of lines "BYTES
            PROBABILITY", with blanks or a comma between them, probabilities 0 to 1 or 0 to 100.
        duration: Flows arrive for this long. Give this or `flows`.
        flows: Number of flows. Give this or `duration`.
        load_of: What `load` is a share of. Default "host-links".
        pairs: Between which hosts flows go. Default "any".
    """

    kind: ClassVar[str | None] = "poisson"
    load: float
    sizes: str
    duration: Time | None = None
    flows: int | None = None
    load_of: LoadOf | None = None
    pairs: Pairs | None = None


@dataclass(kw_only=True, repr=False)
class FlowsWorkload(WorkloadTable):
    """A list of flows, inline or from a file (CSV, HPCC, ConWeave, htsim).

    Args:
        file: A file of flows, relative to the scenario. Give this or `flows`.
        flows: The flows. Give this or `file`.
        format: How the file writes flows. Default "auto".
        rebase: Shift all starts so that the first flow starts at once (files of ns-3 often begin at 2 s). Default
            False.
    """

    kind: ClassVar[str | None] = "flows"
    file: str | None = None
    flows: list[FlowSpec] | None = None
    format: FlowFormat | None = None
    rebase: bool | None = None


@dataclass(kw_only=True, repr=False)
class ScenarioFile(Root):
    """A scenario with every shorthand spelled out: presets replaced by what they stand for, defaults filled in.

    Args:
        topology: Hosts, switches and links. `preset = "..."` instead of `kind` starts from a preset, whose fields can
            be set.
        workload: Traffic. At least one.
        fault: Things that break.
        name: Name of the scenario, in results and reports. Default: the file's name without ".toml".
        network: Packets: their size, their headers, and what a sender does about lost ones.
        observe: What is recorded beyond one record for each flow, job and link.
        pools: Sets of hosts for workloads to have to themselves: `name = hosts`. Drawn by seed, no host in two of them.
        routing: What chooses the route of a packet: switches, or sources among explicit paths.
        run: When the run ends, besides when all is done.
        scheme: How messages are carried, unless a workload says otherwise: the name of a scheme, or a table whose
            `base` is a name and whose other fields replace the preset's. Default "rps".
        schemes: Schemes of this scenario's own, by name.
        seed: Seed of every random stream; the same seed gives the same run on every machine. Default 1.
        switch: All switches.
    """

    topology: Topology
    workload: list[Workload]
    fault: list[Fault] | None = None
    name: str | None = None
    network: Network | None = None
    observe: Observe | None = None
    pools: dict[str, int] | None = None
    routing: Routing | None = None
    run: Run | None = None
    scheme: SchemeName | str | Scheme | None = None
    schemes: dict[str, SchemeName | str | Scheme] | None = None
    seed: int | None = None
    switch: Switch | None = None


# Where acknowledgements queue.
# "control": In a class of their own with strict priority.
# "data": In the class of the data they answer.
AckClass: TypeAlias = Literal["control", "data"]


# How a collective is done.
# "ring": Around a ring in n - 1 steps, twice that for an all-reduce; a broadcast or reduction goes along the ring as a
#   chain, chunk by chunk.
# "double-binary-tree": All-reduce up and down two binary trees, half of the vector each, chunk by chunk.
# "halving-doubling": With partners at distances that halve or double. Other than for an all-reduce, the ranks must be a
#   power of two.
# "hierarchical": All-reduce within servers, between them, and within them again, each around rings.
# "direct": All-to-all at once.
# "pairwise": All-to-all in n - 1 steps, each of which waits for the one before.
# "bruck": All-to-all in about log2 n steps, in which blocks are passed on.
# "binomial": Broadcast or reduction over a binomial tree.
Algorithm: TypeAlias = Literal[
    "ring", "double-binary-tree", "halving-doubling", "hierarchical", "direct", "pairwise", "bruck", "binomial"
]


# What `alpha` is measured in.
# "noise": As "delay", but at least forty times what two delays in a row of one path differ by. Where queues are made by
#   chance a difference of delays says little of what comes next, and senders that follow it meet on the same paths;
#   between paths of which one is always slower it says all. So alpha adapts to what is noise in a fabric.
# "delay": The shortest delay of any path, where it is above the threshold, and the threshold where it is not. What is
#   heard of a path is as old as its delay, so the longer that is, the less a difference of delays should move: with a
#   fixed unit all senders take the shorter of two long queues at once, and it becomes the longer.
# "threshold": The threshold T (the authors' code).
AlphaUnit: TypeAlias = Literal["noise", "delay", "threshold"]


# When the receiver is told how long a message is.
# "first_packet": When its first packet leaves.
# "post": When it is posted.
Announce: TypeAlias = Literal["first_packet", "post"]


# How the weights of paths are computed.
# "float": In floating point, by the equation.
# "fixed": In the integers of the circuit in `hardware/laps`: delays in ticks of 1,024 ps that end at 17.2 ms, weights
#   of 24 bits.
Arithmetic: TypeAlias = Literal["float", "fixed"]


# How much a sender with credit for several receivers asks for.
# "shared": Of each its share.
# "whole": Of each all it could use.
Ask: TypeAlias = Literal["shared", "whole"]


# a size with its unit, such as "8MB" or "4KiB"
Size: TypeAlias = str


# When a run of flows is measured on packets.
# "auto": Where it shows signs that it is outside of the model.
# "off": Never.
# "prefix": Always, and links are used as packets of its beginning used them.
Calibrate: TypeAlias = Literal["auto", "off", "prefix"]


# A congestion control with its parameters.
Cc: TypeAlias = NoneCc | DcqcnCc | DctcpCc | DctcpRateCc | MswiftCc | NsccCc | SmarttCc | StrackCc | SwiftCc | TimelyCc


# What an unmarked notice does besides asking for copies.
# "shield": What it announced does not count as lost for `wait`, as with a marked one: the copies asked for are a round
#   trip away, and until then every packet of the new path would seem to prove a loss.
# "expose": Nothing (DLBF as printed).
CleanNotice: TypeAlias = Literal["shield", "expose"]


# Whether the receiver sends congestion notifications.
# "off": Never.
# "on_mark": For packets marked Congestion Experienced.
# "on_mark_or_gap": For these, and for packets that arrive ahead of a gap, which RoCE adapters take for a sign of loss
#   and answer with a notification even where only the missing packet is sent again (so the ConWeave simulator: a
#   selective acknowledgement of a gap carries the notification bit). Under DCQCN reordering then costs rate. With
#   go-back-N, which drops what is behind a gap, the notification goes with the NACK, one a gap.
CnpMode: TypeAlias = Literal["off", "on_mark", "on_mark_or_gap"]


# When a host computes in a round.
# "after": After its part of the collective.
# "beside": While it communicates; the round is over when both are.
ComputeWhen: TypeAlias = Literal["after", "beside"]


# What the metrics of CONGA count.
# "sent": Bytes that links have sent, up to the largest number of `metric_bits`; every packet carries metrics (the CONGA
#   paper).
# "routed": Bytes of data when they are given a link, waiting or not, without that limit; data alone is balanced and
#   carries metrics, and those told next are drawn at random (conweave-ns3).
CongaCounts: TypeAlias = Literal["sent", "routed"]


# What cooling down counts.
# "answers": Answers, spaced as ever, so that the sender sees the delay fall.
# "literal": Packets, each answered, as the paper has it: at 100 Gb/s all within 0.4 us.
CoolMode: TypeAlias = Literal["answers", "literal"]


# Whether a marked packet that had arrived before makes a congestion notification.
# "ignore": No: copies shall not cost rate.
# "notify": Yes, as any marked packet (ConWeave simulator).
CopyMarks: TypeAlias = Literal["ignore", "notify"]


# Which cores an aggregation switch connects to.
# "planes": The j-th aggregation switch of every pod connects to the j-th plane of `cores / aggs_per_pod` cores.
# "full-mesh": Every aggregation switch connects to every core.
CoreWiring: TypeAlias = Literal["planes", "full-mesh"]


# A named parameter set.
# "hpcc": What the HPCC authors ran as DCQCN.
# "paper": The DCQCN paper.
# "conweave": What the ConWeave authors ran.
# "laps": What the LAPS authors ran.
# "astra": Defaults of ASTRA-sim's ns-3 back end.
DcqcnPreset: TypeAlias = Literal["hpcc", "paper", "conweave", "laps", "astra"]


# What a mark does to the window.
# "half_packet": Every marked acknowledgement takes half a packet (NSDI 2018).
# "half_window": A marked acknowledgement halves the window, at most once a round trip. Not MP-RDMA.
Decrease: TypeAlias = Literal["half_packet", "half_window"]


# Order of delivery.
# "unordered": As messages become whole.
# "ordered": As they were posted.
Delivery: TypeAlias = Literal["unordered", "ordered"]


# For what is granted.
# "target": What is missing to the pull target.
# "full": Full grants while anything is missing; what was trimmed first.
# "arrivals": One grant for each packet that arrives, as far as the target goes.
Demand: TypeAlias = Literal["target", "full", "arrivals"]


# Whose acknowledgements tell a queue pair of its paths.
# "host_pair": Those of all queue pairs between the two hosts.
# "queue_pair": Its own.
DlbfScope: TypeAlias = Literal["host_pair", "queue_pair"]


# Which reading of the paper.
# "published": As printed: one delay gap for all packets in flight, that of the path just left (equations 1 to 3), and a
#   switch for every marked acknowledgement of the path in use.
# "repaired": The gap of each packet is that of the path it took, so that two quick switches do not hide a slow one; at
#   most one switch a round-trip time, or marks of unknown paths use up all of them; a timeout counts as congestion. A
#   path of which nothing is known is measured by the notice while data stays where it is, and used if the answer is
#   unmarked: what overtakes has to wait at the receiver for what it overtook, so a switch before the gap is known gains
#   nothing and costs the order.
DlbfVariant: TypeAlias = Literal["published", "repaired"]


# Which hosts send to the receivers of an incast.
# "independent": For each receiver any of the other hosts; one may send to several receivers.
# "disjoint": A host sends to one receiver only, and receivers do not send.
Draw: TypeAlias = Literal["independent", "disjoint"]


# Which DRILL.
# "published": A memory for each set of next hops, which wins if it is better; a queue is what has not been sent.
# "conweave-ns3": As conweave-ns3: a memory for each destination, which wins also where others are as good; different
#   ports are looked at; the packet being sent is no part of a queue; control packets hash.
DrillVariant: TypeAlias = Literal["published", "conweave-ns3"]


# a time with its unit, such as "1us" or "500ns"
Time: TypeAlias = str


# What an acknowledgement of the peer does to the congestion control of a flow to another site.
# "none": Nothing, as the paper has it: once the edge is silent a flow that was slowed down stays so.
# "hold": It clocks the congestion control once, with the last round-trip time the edge has told, or with the idle one
#   once the edge has been silent for `hold_for`: silence means there is no queue.
E2eMode: TypeAlias = Literal["none", "hold"]


# How switches choose among equal-cost next hops: a hash of source, destination and path entropy.
# "seeded": A seed of its own in every switch.
# "polarised": The same seed everywhere: successive tiers repeat each other's choice (hash polarisation).
EcmpHash: TypeAlias = Literal["seeded", "polarised"]


# Whether ERD's header counts as payload of the NIC's packet.
# "inside_mtu": It does.
# "outside_mtu": It does not.
EethPlace: TypeAlias = Literal["inside_mtu", "outside_mtu"]


# Which messages of an exchange of tokens are sent at once.
# "direct": All.
# "pairwise": One a host: to the next host, then to the one after it, and so on.
Exchange: TypeAlias = Literal["direct", "pairwise"]


# What a receiver does about a fabric that cannot carry what it grants.
# "off": Nothing.
FabricControl: TypeAlias = Literal["off"] | PacedFabricControl


# A scheduled fault. `at` is simulated time.
Fault: TypeAlias = (
    LinkDownFault
    | LinkFlapFault
    | LinkRateFault
    | LinkDelayFault
    | LinkLossFault
    | LinkCorruptionFault
    | SwitchDownFault
    | PauseStormFault
)


# What multiplies in the feed-forward part of a layer.
# "plain": Two matrices, as in GPT-3.
# "gated": Three: one gates another (Shazeer, "GLU variants improve transformer", 2020).
FeedForward: TypeAlias = Literal["plain", "gated"]


# What moves through the network.
# "packet": Each packet.
# "flow": Messages as fluids.
Fidelity: TypeAlias = Literal["packet", "flow"]


# How a file writes flows.
# "auto": CSV if the name ends in ".csv", htsim if in ".cm", else HPCC or ConWeave by the number of columns.
# "csv": Comma-separated with column names: src, dst, size_bytes, and if wanted start_ns, id, after, after_delays_ns,
#   after_moments (delivery or completion), after_count, delay_ns, connection.
# "hpcc": `flow.txt` of HPCC: src dst pg dport bytes start_seconds.
# "conweave": `flow.txt` of ConWeave: src dst pg bytes start_seconds.
# "htsim": Connection matrix of htsim, with triggers. Starts are microseconds (uet-htsim) or picoseconds (csg-htsim):
#   the latter if one of them would be a second or later as microseconds. A note says which.
# "uet-htsim": The same, with starts in microseconds.
# "csg-htsim": The same, with starts in picoseconds.
FlowFormat: TypeAlias = Literal["auto", "csv", "hpcc", "conweave", "htsim", "uet-htsim", "csg-htsim"]


# Whether ranks that are alike are run once.
# "auto": In large jobs.
# "always": In every job; it is an error where none are alike.
# "never": In none.
Fold: TypeAlias = Literal["auto", "always", "never"]


# Which paths are forgiven when they are passed over.
# "first": The first one of them (uet-htsim): several bad ones in a row recover slowly.
# "each": Each of them (EQDS).
Forgives: TypeAlias = Literal["first", "each"]


# How a switch chooses among equal-cost next hops.
# "ecmp": By a hash of source, destination and path entropy.
# "wcmp": By that hash, with shares by the capacity that each next hop has to the destination (WCMP, EuroSys 2014).
# "rps": A random one for every packet.
# "weighted-rps": A random one for every packet, with shares by capacity.
# "letflow": A random one for every flowlet (LetFlow, NSDI 2017).
# "drill": For every packet the shortest queue among a few random ones and the best one seen before (DRILL, SIGCOMM
#   2017).
# "ugal": For every packet the shortest way, or one by a random other switch where less waits for that (UGAL-L, ISCA
#   2008; made for Dragonfly). Each host must be at one switch.
# "conga": For every flowlet the way that is least congested as far as the leaf of the receiver (CONGA, SIGCOMM 2014).
#   Each host must be at one switch.
# "conweave": Flows leave ways with a long round trip, and the switch of the receiver puts them in order (ConWeave,
#   SIGCOMM 2023). Each host must be at one switch.
Forwarding: TypeAlias = Literal["ecmp", "wcmp", "rps", "weighted-rps", "letflow", "drill", "ugal", "conga", "conweave"]


# A named accounting of header bytes.
# "rocev2": RoCEv2 over Ethernet as the standard has it: preamble and gap 20, Ethernet 14, IPv4 20, UDP 8, BTH 12, ICRC
#   4, FCS 4. RETH 16 on the first packet of a WRITE and on READ requests, ImmDt 4 on the last packet of a message with
#   immediate, AETH 4 on acknowledgements and on all but the middle packets of a READ response, 16 bytes on congestion
#   notifications and on our probes. Payload fills words of 4 bytes; frames have at least 64 bytes. Packets of datagram
#   queue pairs have RDETH 4, DETH 8 and ERD's header, 9. Our extension header is not counted: this is what an adapter
#   of today would send.
# "ns3": What the ns-3 RDMA simulators count: 48 bytes of header on every packet, 60 bytes for an acknowledgement.
# "pathweave": Exactly what the datapath sends: the frame [`emit`](crate::emit) writes, plus FCS, preamble and gap.
Framing: TypeAlias = Literal["rocev2", "ns3", "pathweave"]


# Marking in the queues of GPUs that forward.
# "unmarked": Their packets are not marked, and the host knows what its GPU's ports can send.
# "marked": GPUs mark as all switches do, as in the evaluation of LAPS.
GpuQueues: TypeAlias = Literal["unmarked", "marked"]


# What a grant counts for on the link.
# "granted": What it grants.
GrantCost: TypeAlias = Literal["granted"] | PacketGrantCost


# Whether those who want nothing are granted something.
# "on": While nobody wants anything.
# "off": Never.
IdleGrants: TypeAlias = Literal["on", "off"]


# The round trip in which a window grows by `increase`.
# "path": That to the peer. Over a WAN this is a packet a millisecond, so a window cut on what a near switch told stays
#   small for seconds.
# "measured": That of the way measured, by as much rate as a flow that ends there gains: a packet of its window. Grows
#   as fast as it shrinks.
IncreaseOver: TypeAlias = Literal["path", "measured"]


# How the times of computations vary.
Jitter: TypeAlias = UniformJitter | LogNormalJitter | PausesJitter


# Which algorithm: that of pathweave, of the paper or of its authors' code.
# "repaired": pathweave's. One silent path is probed before a data packet, if data hardly takes it or gets no answer
#   there, and a probe doubles the delay that the path is thought to have. The expected rate is at most the line's.
#   After a change the rate stays until every path has shown the effect. Delays that are guessed do not count as
#   congestion.
# "published": The paper's, algorithms 1 and 2. All silent paths are probed. The expected rate has no limit. After a
#   change the rate stays for twice the shortest delay. Delays that are guessed count as measured ones.
# "code_2025": That of the authors' code of January 2025. Probes overtake data, and a probe leaves the delay of its path
#   as it was last measured.
LapsVariant: TypeAlias = Literal["repaired", "published", "code_2025"]


# What ports that lead to hosts do.
# "mark": They mark as all others.
# "leave": They mark nothing.
LastHop: TypeAlias = Literal["mark", "leave"]


# What a trim at the last hop does to the window.
# "cut": It takes the packet's bytes from it.
# "spare": Nothing.
LastHopTrims: TypeAlias = Literal["cut", "spare"]


# What limits a queue pair.
# "auto": The window alone in a fabric that pauses senders, which loses nothing by long queues; rate and window where
#   switches drop, and on real hosts, who cannot know.
# "window": A window of two threshold delays of the line alone: what the authors' code does, where the rate never
#   reaches the pacer. A rate that was lowered because of a queue leaves the link idle once that is empty, and takes
#   several thresholds to come back; a window lets more pass as the queue gets shorter.
# "rate_and_window": Its rate (algorithm 2), by pacing, and that window.
# "rate_and_scaled_window": The same, the window in proportion to the rate.
Limit: TypeAlias = Literal["auto", "window", "rate_and_window", "rate_and_scaled_window"]


# What `load` is a share of.
# "host-links": The links of all hosts.
# "rack-uplinks": The links from racks upwards, the bisection of a leaf-spine; only flows between racks count.
LoadOf: TypeAlias = Literal["host-links", "rack-uplinks"]


# What the delay of an idle path may exceed without being congested.
# "per_switch": So many packets in the queue of every switch on the way (section III-E).
# "per_link": So many packets on every link (the authors' code, which has one).
Margin: TypeAlias = Literal["per_switch", "per_link"]


# When a packet is marked.
# "enqueue": By the queue it finds.
# "dequeue": By the queue it leaves behind: younger news for the sender.
MarkAt: TypeAlias = Literal["enqueue", "dequeue"]


# What a marked packet does to the rate.
# "of_its_path": Its notification slows the queue pair as long as the packet's path is used: not if that has been left;
#   and once it is left for what marks told, the rate is again what it was before them.
# "reduced": Its notification slows the queue pair, as without DLBF; the path is left as well (the paper's "DCQCN
#   enabled").
# "kept": Its notification does nothing while there is a path to go to that is not known to be congested.
MarkedRate: TypeAlias = Literal["of_its_path", "reduced", "kept"]


# Connections of the messages of a workload.
# "of-kind": Those of the kind: most kinds have one for each pair of processes.
# "own": One for each message, which begins at the rate of a new connection (ASTRA-sim with ns-3).
MessageConnections: TypeAlias = Literal["of-kind", "own"]


# A network whose training is simulated. Input is a colour image of 224 x 224 pixels, output 1,000 classes.
# "resnet-50": 25,557,032 parameters (He et al., "Deep residual learning for image recognition", CVPR 2016, table 1).
# "vgg-16": 138,357,544 parameters (Simonyan and Zisserman, "Very deep convolutional networks for large-scale image
#   recognition", ICLR 2015, table 1, column D).
Model: TypeAlias = Literal["resnet-50", "vgg-16"]


# Name of a scheme, built-in or defined under [schemes.NAME].
SchemeName: TypeAlias = Literal[
    "ecmp",
    "ecmp-sr",
    "qp-scaling",
    "qp16",
    "qp32",
    "per-message",
    "rps",
    "rps-nocc",
    "udmp",
    "udmp-published",
    "mprdma",
    "mprdma-half-window",
    "swift-rps",
    "reps",
    "smartt",
    "smartt-reps",
    "strack",
    "uet-nscc",
    "nscc",
    "uet-rccc",
    "rccc",
    "uet",
    "uet-both",
    "eqds",
    "ndp",
    "mswift",
    "mrc",
    "weave",
    "timely",
    "swift",
    "swift-published",
    "reflex-timely",
    "reflex-timely-published",
    "reflex-timely-scaled",
    "reflex-swift",
    "reflex-swift-published",
    "dctcp",
    "plb",
    "laps",
    "laps-published",
    "laps-code-2025",
    "laps-hw",
    "laps-tcp",
    "letflow",
    "conga",
    "conweave",
    "drill",
    "switch-rps",
    "switch-wrps",
    "wcmp",
    "ugal",
    "dlbf",
    "dlbf-published",
    "erd",
    "erd-dcqcn",
    "erd-uncontrolled",
    "xrc",
    "rd",
]


# Whose rules, where they differ.
# "htsim": uet-htsim's: an acknowledgement without a measurement counts as one of average delay; a loss that was not
#   told by a trim does not move the window.
# "ue1.0": The specification's, as known at second hand: without a measurement the window does not move; a loss takes
#   its bytes from the window; where switches trim, delay alone does not make it collapse. Times start when the queue
#   pair opens.
NsccProfile: TypeAlias = Literal["htsim", "ue1.0"]


# What leaves on a new path before its data.
# "wait": Nothing, but data waits until what is on its way on other paths will have arrived before it; a notice where
#   the delay of the path is not known (section III-D). Copies would take as long, and their bytes.
# "copies_and_notices": Copies of what would arrive late; a notice where the delay of the path is not known (sections
#   III-C and III-D).
# "copies": Copies always, by the last delay known of a path or else the least of any: no notices.
# "notices": Notices where the delay is not known, nothing otherwise: no copies.
# "nothing": Nothing.
OnSwitch: TypeAlias = Literal["wait", "copies_and_notices", "copies", "notices", "nothing"]


# What a collective achieves, named as in NCCL. Sizes are those of nccl-tests.
# "all-reduce": Everybody ends with the sum of everybody's vector; the size is that of the vector.
# "reduce-scatter": The vectors are added up and everybody ends with its share of the sum; the size is that of the
#   vector.
# "all-gather": Everybody ends with everybody's part; the size is that of all parts together.
# "all-to-all": Everybody has a block for everybody; the size is that of what one rank has, its block for itself
#   included.
# "broadcast": Rank 0's vector goes to all; the size is that of the vector.
# "reduce": Rank 0 ends with the sum of everybody's vector; the size is that of the vector.
Operation: TypeAlias = Literal["all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce"]


# Who keeps the state of the optimizer.
# "distributed": Data-parallel ranks share it: gradients are scattered, and weights gathered when the next iteration
#   begins (Rajbhandari et al., "ZeRO", SC 2020, stage 1).
# "replicated": Every rank has all of it: gradients are all-reduced.
Optimizer: TypeAlias = Literal["distributed", "replicated"]


# What keeps the packets of a flow in order when it changes queues.
# "both": Its packets follow those of its own that wait, whichever queue they are in.
# "recovery": Only on recovery, out of the controlled queue, as the paper has it: a flow that becomes congested may be
#   overtaken by itself.
# "off": None.
OrderGuards: TypeAlias = Literal["both", "recovery", "off"]


# Between which hosts flows go.
# "any": Any two, evenly distributed.
# "inter-rack": Any two in different racks: an evenly drawn sender, then a receiver in another rack.
# "intra-site": Any two in the same data centre.
# "inter-site": Any two in different data centres: an evenly drawn sender, then a receiver in another one.
Pairs: TypeAlias = Literal["any", "inter-rack", "intra-site", "inter-site"]


# How weave chooses paths.
# "came_back_well": A path whose packets came back quickly again, marked or not, else a random one. One window for all
#   paths, and no state for each path.
# "window_each": The least full path. Each has a window of its own, which takes 32 bytes a path; of more than 1,024
#   paths the first are used.
PathChoice: TypeAlias = Literal["came_back_well", "window_each"]


# How long a path may say nothing before all that is outstanding on it counts as lost.
# "guarded": Twice its delay and `rto_slack`, at least `rto_min`.
# "published": Twice its latest one-way delay, which any growing queue exceeds (LAPS, section III-D). Needs clocks that
#   agree.
# "fixed": `rto_min` always (LAPS, its code).
PathRto: TypeAlias = Literal["guarded", "published", "fixed"]


# Which paths a pair of hosts has.
PathSet: TypeAlias = OwnPathSet | AllShortestPathSet | KShortestPathSet | FilePathSet | LapsPathSet


# How receivers are assigned.
# "random": At random, by seed; no host to itself.
# "inter-rack": At random, every flow between different racks.
# "inter-pod": At random, every flow between different pods.
# "shift": Host i to host i + `shift`, modulo the number of hosts.
Pattern: TypeAlias = Literal["random", "inter-rack", "inter-pod", "shift"]


# Threshold of XOFF.
# "dynamic": A share of the free shared buffer.
# "static": An equal part of the shared buffer for each port.
PfcThreshold: TypeAlias = Literal["dynamic", "static"]


# A path picker: its name, or a table of its name with its parameters (`{ plb = { forced_rounds = 6 } }`).
# "ecmp": One path for the life of the queue pair.
# "wcmp": One path for its life, drawn in proportion to the paths' rates.
# "rps": Every packet takes a random path.
# "weighted_rps": Every packet takes a random path, in proportion to the paths' rates.
# "per_message": Every message takes a random path.
# "round_robin": Packet after packet takes path after path.
# "bitmap": Packet after packet takes path after path; a marked one is passed over once.
# "oblivious": Path after path, each lap in an order of its own.
Picker: TypeAlias = (
    Literal["ecmp", "wcmp", "rps", "weighted_rps", "per_message", "round_robin", "bitmap", "oblivious"]
    | PenaltiesPicker
    | RecycledPicker
    | MixedPicker
    | PlbPicker
)


# Which hosts form a group.
# "consecutive": Neighbours: group 0 is hosts 0, 1, 2, ...
# "strided": Far apart: with G groups, group 0 is hosts 0, G, 2G, ...
# "random": Drawn by seed.
Placement: TypeAlias = Literal["consecutive", "strided", "random"]


# A policy with its parameters, and its factory.
Policy: TypeAlias = (
    SplitPolicy
    | UdmpPolicy
    | MprdmaPolicy
    | MrcPolicy
    | DlbfPolicy
    | RepsPolicy
    | ReflexPolicy
    | LapsPolicy
    | WeavePolicy
)


# Which source ports a queue pair uses.
# "any": Any: several may take the same way, as switches hash them.
# "distinct": One for each way the fabric has to the receiver, up to `paths` of them, found by evaluating the hashes of
#   the switches. For simulations: hosts do not know these hashes, but can find as much by tracing.
Ports: TypeAlias = Literal["any", "distinct"]


# What credit counts.
# "packet": A packet of any size.
Quantum: TypeAlias = Literal["packet"] | BytesQuantum


# a rate with its unit, such as "100Gbps"
Rate: TypeAlias = str


# What a decrease goes down to.
# "to_share": Half the rate, but not below the share of the line that the delay tells: T / t of it. At a delay of t a
#   window of two thresholds lets no more than twice that pass.
# "half": Half the rate (algorithm 2).
RateCut: TypeAlias = Literal["to_share", "half"]


# When the reaction point acts on a notification.
# "immediate": At once: the rate falls, then alpha rises, and the alpha timer restarts (SIGCOMM'15, section 3.1).
#   Assumes a notification point that spaces its notifications.
# "sampled": Two free-running clocks, started by the first notification, ask whether one arrived since they last asked:
#   one moves alpha up or down, the other cuts the rate. So do the ns-3 models since HPCC (`RdmaHw::cnp_received_mlx`).
#   So the first cut, too, comes one `decrease_interval` after its notification.
Reaction: TypeAlias = Literal["immediate", "sampled"]


# Loss recovery of the sender and what the receiver does with packets out of order.
Recovery: TypeAlias = (
    GoBackNRecovery
    | GoBackNRepeatedRecovery
    | SelectiveRepeatRecovery
    | TimedRecovery
    | TimeoutsRecovery
    | SleekRecovery
    | PathOrderRecovery
)


# What the receiver says of packets that arrive ahead of a gap, beyond acknowledging them.
Reordering: TypeAlias = SilentReordering | ReportedReordering


# What the receiver asks for again.
# "overtaken": What later packets have overtaken on every path, each of which keeps order, and the end of what was sent
#   once the flow has fallen silent. Who is asked in vain is asked again after twice the time.
# "two_scans": What two scans a period apart found missing.
# "literal": What one scan found missing below the highest packet, as printed.
# "never": Nothing.
Repair: TypeAlias = Literal["overtaken", "two_scans", "literal", "never"]


# The round trip within which ConWeave expects the answer to a probe on an idle network.
# "way": That of the way the probe takes, from switch to switch.
# "shortest": Twice the propagation from host to host on a shortest way, whichever way the probe takes (the study of
#   LAPS: on a longer one every answer is late, and the flow changes its way again).
ReplyAfter: TypeAlias = Literal["way", "shortest"]


# Retransmissions among other packets.
# "first": Before all others.
# "half": Alternately with others, where both wait.
# "last": After all others.
RetryOrder: TypeAlias = Literal["first", "half", "last"]


# Whose packets keep one order on a path.
# "host": Those of all queue pairs to a host: what is heard of one shows the losses of another (LAPS, its code).
# "queue_pair": Those of a queue pair (LAPS, section III-D).
RingScope: TypeAlias = Literal["host", "queue_pair"]


# What a workload is to the run.
# "foreground": The run waits for it.
# "background": The run does not.
Role: TypeAlias = Literal["foreground", "background"]


# What of a source route counts as bytes of a packet.
# "none": Nothing: as the ns-3 simulators have it, where switches know routes by other means.
# "anchors": A list of anchors: as few switches as pin the path, where between two of them the shortest way is the only
#   one. 8 bytes and 4 an anchor; nothing on a path that is itself the only shortest way.
# "hops": The egress port at every switch: 8 bytes and 2 a switch, filled up to words of 4.
# "segments": A segment for every anchor, as in SRv6: 8 bytes and 16 a segment.
RouteBytes: TypeAlias = Literal["none", "anchors", "hops", "segments"]


Routing: TypeAlias = (
    Literal["ecmp", "source", "sender-switch", "next-hops"]
    | EcmpRouting
    | SourceRouting
    | SenderSwitchRouting
    | NextHopsRouting
)


# The round-trip time that the period of the scan is measured in.
# "measured": From asking for a packet to its arrival, of late.
# "configured": That of the idle network.
RttSource: TypeAlias = Literal["measured", "configured"]


# In which order the stages of a pipeline work.
# "1f1b": Stage s of S does S - 1 - s microbatches forward, then one forward and one backward in turn (Narayanan et al.,
#   "PipeDream", SOSP 2019, with a flush after each iteration).
# "gpipe": All forward, then all backward (Huang et al., "GPipe", 2019).
Schedule: TypeAlias = Literal["1f1b", "gpipe"]


# Whom a queue pair serves (the transport service of the InfiniBand architecture).
Service: TypeAlias = ConnectionService | SharedReceiveService | EndToEndService | DatagramService


# Whom a notification of marks slows down, where datagrams have congestion control.
# "destination": The destination that tells. What is on the way to others does not pay for it.
# "queue_pair": The queue pair, which has one rate for all its destinations, as that of a connection has. It knows of
#   congestion before it has sent anything to most of them; one slow destination slows all.
Slows: TypeAlias = Literal["destination", "queue_pair"]


# What counts as a hop of the way there and back.
# "nodes_rt": Every node visited, the hosts at the ends included: with links of 1 us the only reading whose target lies
#   above the idle round-trip time.
# "links_rt": Every link, there and back.
# "links_fwd": Every link there.
SwiftHops: TypeAlias = Literal["nodes_rt", "links_rt", "links_fwd"]


# What marking thresholds mean on ports of different rates.
# "by-rate": In proportion to the rate of the port, as the HPCC configurations list them.
# "fixed": The same bytes on every port.
Thresholds: TypeAlias = Literal["by-rate", "fixed"]


# A named parameter set.
# "hpcc": What the HPCC authors ran as TIMELY: thresholds of the paper, steps that grow with the line rate.
# "paper": The paper (SIGCOMM 2015, section 4 and 6): steps of 10 Mb/s at any line rate.
# "erpc": What eRPC runs (NSDI 2019): a slow average of the gradient, a high upper threshold.
# "near": For round-trip times of one data centre or of a way to its edge: thresholds at a tenth of the paper's,
#   gradient by a base of 6 us. Ours.
TimelyPreset: TypeAlias = Literal["hpcc", "paper", "erpc", "near"]


Topology: TypeAlias = (
    StarTopology
    | DumbbellTopology
    | LeafSpineTopology
    | FatTreeTopology
    | CrossDcTopology
    | DragonflyTopology
    | RailTopology
    | TorusTopology
    | FullMeshTopology
    | JellyfishTopology
    | FileTopology
    | HpccTopology
    | SimaiTopology
    | HtsimTopology
    | LapsTopology
    | AstraTopology
    | PresetTopology
)


# Whether the ends of a dimension are linked.
# "joined": Each dimension of three or more switches is a ring: a torus.
# "open": Each dimension is a line: a mesh.
TorusEnds: TypeAlias = Literal["joined", "open"]


# A published model.
# "gpt-3-175b": 175 billion parameters (Brown et al., "Language models are few-shot learners", 2020, table 2.1).
# "llama-3-8b": 8 billion parameters (Grattafiori et al., "The Llama 3 herd of models", 2024, table 3).
# "llama-3-70b": 70 billion parameters (likewise).
# "llama-3-405b": 405 billion parameters (likewise).
# "mixtral-8x7b": 47 billion parameters, 13 billion of them active for a token (Jiang et al., "Mixtral of experts",
#   2024, table 1).
TransformerModel: TypeAlias = Literal["gpt-3-175b", "llama-3-8b", "llama-3-70b", "llama-3-405b", "mixtral-8x7b"]


# How far above the average a round-trip time is whose acknowledgement releases nothing.
# "by_base": By a base round-trip time: for fabrics, where queues hardly get longer than that.
# "by_queue": By as much as the average is above the base, but at least a base: for real hosts, where queues may be many
#   base times long.
UdmpLate: TypeAlias = Literal["by_base", "by_queue"]


# Which control law.
# "published": As printed in algorithms 1 and 2, with the packets in flight counted (the listing lost the two lines that
#   do) and a restart kick, without which flows deadlock in incast. Its rate drifts to half the line under noise.
# "repaired": With a queue target, an additive step, a rate that follows low round-trip times, spare paths, caps on pool
#   and flight, and a restart timer.
UdmpVariant: TypeAlias = Literal["published", "repaired"]


# What of the first window has not left when the receiver is first heard of.
# "lapses": It may not be used any more.
# "stays": It may.
Unused: TypeAlias = Literal["lapses", "stays"]


# The verb that messages are posted with.
# "write": One-sided WRITE.
# "send": Two-sided SEND.
Verb: TypeAlias = Literal["write", "send"]


# The most a queue pair may have in flight.
# "unlimited": No bound.
Window: TypeAlias = Literal["unlimited"] | BdpWindow | PacketsWindow


# Whose threshold the window is two of, where the window alone limits.
# "paths": That of the paths to the receiver (the authors' code): little waits for those near by.
# "fabric": That of the longest path of the fabric: senders near a receiver get the same share of its links as those far
#   off. An incast of 64 MB over rails is done 0.2 % after the bound in place of 3.7, and what little waits under other
#   loads makes their means up to 5 % longer there.
WindowOf: TypeAlias = Literal["paths", "fabric"]


# Traffic that is reported together and carried alike. Several run side by side.
Workload: TypeAlias = (
    PermutationWorkload
    | IncastWorkload
    | AllToAllWorkload
    | RingAllReduceWorkload
    | CollectiveWorkload
    | MoeWorkload
    | PipelineWorkload
    | TrainingWorkload
    | TransformerWorkload
    | ChakraWorkload
    | GoalWorkload
    | SimaiWorkload
    | PoissonWorkload
    | FlowsWorkload
)
