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
    "Asic",
    "Ask",
    "AstraTopology",
    "Attach",
    "AttachRule",
    "BcubeTopology",
    "BdpWindow",
    "BytesQuantum",
    "Calibrate",
    "Cc",
    "ChakraWorkload",
    "CleanNotice",
    "ClusterTopology",
    "CnpPolicy",
    "CollectiveWorkload",
    "ComputeWhen",
    "ConWeave",
    "Conga",
    "CongaCounts",
    "ConnectionService",
    "ContextParallelism",
    "CoolMode",
    "CoreWiring",
    "Cpu",
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
    "EcnChange",
    "EdgeUpdates",
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
    "FlowHost",
    "FlowSpec",
    "FlowsWorkload",
    "Fold",
    "Forgives",
    "Forwarding",
    "ForwardingConfig",
    "Framing",
    "FullMeshScaleUp",
    "FullMeshTopology",
    "GoBackNRecovery",
    "GoBackNRepeatedRecovery",
    "GoalWorkload",
    "Gpu",
    "GpuModel",
    "GpuQueues",
    "GrantCost",
    "GroupSize",
    "HopScaling",
    "HostList",
    "HostRef",
    "HostStamp",
    "HpccCc",
    "HpccReaction",
    "HpccTopology",
    "HtsimTopology",
    "HybridCubeMeshScaleUp",
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
    "Library",
    "Limit",
    "LinkCorruptionFault",
    "LinkDelayFault",
    "LinkDownFault",
    "LinkFlapFault",
    "LinkFor",
    "LinkLossFault",
    "LinkRateFault",
    "ListScaleUp",
    "ListedLink",
    "LoadOf",
    "LogNormalJitter",
    "Margin",
    "MarkAt",
    "MarkedRate",
    "MessageConnections",
    "MixedPicker",
    "Model",
    "ModelChoice",
    "ModelFile",
    "MoeWorkload",
    "MprdmaPolicy",
    "MrcPolicy",
    "MswiftCc",
    "NcclAlgorithm",
    "NcclProtocol",
    "NcclWorkload",
    "Ndt",
    "Network",
    "NextHopsRouting",
    "Nic",
    "NoneCc",
    "NoneScaleUp",
    "NotificationScope",
    "Nscc",
    "NsccCc",
    "NsccProfile",
    "Nsf",
    "Observe",
    "OffCnpPolicy",
    "OnMarkCnpPolicy",
    "OnMarkOrGapCnpPolicy",
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
    "PfcChange",
    "PfcThreshold",
    "Picker",
    "PipelineSchedule",
    "PipelineWorkload",
    "PlacedPool",
    "Placement",
    "Plb",
    "PlbPicker",
    "PoissonWorkload",
    "Policy",
    "Pool",
    "PoolHosts",
    "PoolPlacement",
    "Ports",
    "Precision",
    "PresetTopology",
    "Quantum",
    "RailTopology",
    "Rate",
    "RateCut",
    "Reaction",
    "Recomputation",
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
    "RingScaleUp",
    "RingScope",
    "Role",
    "RouteBytes",
    "Routing",
    "RttSource",
    "Run",
    "ScaleUp",
    "ScenarioFile",
    "Schedule",
    "Scheme",
    "SchemeName",
    "SelectiveRepeatRecovery",
    "SenderSwitchRouting",
    "Server",
    "Service",
    "SharedReceiveService",
    "SideChannel",
    "SideRoute",
    "SilentReordering",
    "SimaiTopology",
    "SimaiWorkload",
    "Size",
    "SleekRecovery",
    "Slow",
    "SmarttCc",
    "SourceRouting",
    "SplitPolicy",
    "StarTopology",
    "StrackCc",
    "Stragglers",
    "Swift",
    "SwiftCc",
    "Switch",
    "SwitchDownFault",
    "SwitchFor",
    "SwitchScaleUp",
    "Thresholds",
    "Time",
    "TimedRecovery",
    "TimelyCc",
    "TimelyPreset",
    "TimeoutsRecovery",
    "Topology",
    "TorusEnds",
    "TorusScaleUp",
    "TorusTopology",
    "TrainingWorkload",
    "TransformerModel",
    "TransformerWorkload",
    "Trim",
    "TrimChange",
    "UdmpLate",
    "UdmpPolicy",
    "UdmpPublishedPolicy",
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
    """Acknowledgements of the receiver.

    Args:
        every_bytes: Bytes of new packets per acknowledgement, headers and gaps included, at most a quarter of the
            bandwidth-delay product of a simulated path; overrides `every_packets`. Absent: packets count. Some packets
            are acknowledged at once: the first of a queue pair, marked packets, duplicates, retransmissions, packets in
            which the sender requests an acknowledgement, and the packet that closes the gap before such a request. A
            sender requests an acknowledgement if it may send no more, or has no more to send (Ultra Ethernet 1.0,
            section 3.6.12).
        every_packets: Data packets per acknowledgement; 1 acknowledges each packet. Some packets are acknowledged at
            once: the last of a message, duplicates, retransmissions while packets are missing, the packet that proves
            another one lost (`recovery.reorder_packets`), and the packet that completes a message. Out-of-order packets
            are not, because an acknowledgement reports 64 of them. Go-back-N NACKs out-of-order packets at once.
        max_delay: Longest delay of an acknowledgement.
    """

    every_bytes: Size | None = None
    every_packets: int | None = None
    max_delay: Time | None = None


@dataclass(kw_only=True, repr=False)
class Algorithms(Table):
    """Algorithms of the collectives of a trace.

    Args:
        all_gather: Algorithm of all-gathers. `halving-doubling` needs a power of two of ranks. Default "ring".
        all_reduce: Algorithm of all-reduces. Default "ring".
        all_to_all: Algorithm of all-to-alls. Default "direct".
        bandwidth: Part of the rate of links that NCCL keeps busy. Default: the value fitted to the GPU's generation.
        broadcast: Algorithm of broadcasts and reductions. Default "ring".
        chunk: Largest piece that double binary trees and chains send, bytes (default 512 KiB, as in NCCL).
        gpu: Model of GPU, for library = "nccl". Default: that of the servers' model.
        latency: Factor of the latencies of NCCL's protocol Simple. Default: the value fitted to the GPU's generation.
        library: Library whose collectives run.
        local_size: Number of consecutive ranks that form a server, for the hierarchical all-reduce (default 8, the GPUs
            of an HGX board).
        reduce_scatter: Algorithm of reduce-scatters. `halving-doubling` needs a power of two of ranks. Default "ring".
    """

    all_gather: Algorithm | None = None
    all_reduce: Algorithm | None = None
    all_to_all: Algorithm | None = None
    bandwidth: float | None = None
    broadcast: Algorithm | None = None
    chunk: Size | None = None
    gpu: Gpu | None = None
    latency: float | None = None
    library: Library | None = None
    local_size: int | None = None
    reduce_scatter: Algorithm | None = None


@dataclass(kw_only=True, repr=False)
class NoneCc(Table):
    """No congestion control: line rate, or a fixed window.

    Args:
        window: Largest amount of data in flight of a queue pair: "unlimited" (default), { bdp = 1.0 } or { packets = 64
            }.
    """

    kind: ClassVar[str | None] = "none"
    window: Window | None = None


@dataclass(kw_only=True, repr=False)
class DcqcnCc(Table):
    """DCQCN's reaction point: rate-based, driven by congestion notifications.

    Args:
        additive_increase: R_AI: increase of the target by an additive step.
        alpha_timer: K: alpha is updated (sampled) or decays (immediate) once in this time.
        byte_counter: B: wire bytes sent that make one step of rate increase; 0B: no byte counter.
        clamp_target: Every cut sets the target to the rate before it. If false, a cut without an increase since the
            last one keeps the old target.
        decrease_interval: The rate falls at most once in this time; with "immediate", 0s reacts to every notification.
        fast_recovery_stages: F: steps that halve the distance to the target before the target itself rises.
        gain: g: weight of the newest observation in alpha, 0 to 1.
        hyper_increase: R_HAI: increase of the target by a step once both timer and byte counter are past F.
        increase_scale: Line rate for which R_AI and R_HAI are given; they grow in proportion. 0bps: they are absolute.
        initial_alpha: Alpha at the first notification, 0 to 1; a cut is by alpha / 2.
        min_rate: The rate never falls below this.
        preset: Preset that supplies the values below unless they are set: "hpcc" (default), "paper", "conweave",
            "laps", "astra".
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
    """DCTCP: window-based, driven by the fraction of marked packets.

    Args:
        gain: g: weight of the newest round in the average fraction of marked packets. Default 1/16 (RFC 8257, section
            4.2).
        increase: Packets added per round trip. Default 1. The LAPS study adds 1 Gb/s a round trip instead: about 1.6
            packets of 1,000 bytes at 13 us.
        initial: Initial window. Default one bandwidth-delay product, as for NICs that begin at line rate; Linux has 10
            packets.
        max_bdp: Largest window, in bandwidth-delay products. Default 8. It must also hold the packets queued at the
            marking threshold.
        min_packets: Smallest window, in packets. Default 2 (Linux).
    """

    kind: ClassVar[str | None] = "dctcp"
    gain: float | None = None
    increase: float | None = None
    initial: Window | None = None
    max_bdp: float | None = None
    min_packets: float | None = None


@dataclass(kw_only=True, repr=False)
class DctcpRateCc(Table):
    """DCTCP with a rate instead of the window, as in RDMA simulators.

    Args:
        gain: g: weight of the newest round in the average fraction of marked packets. Default 1/256 (CONFIG_DCQCN.txt
            of the LAPS study, which uses it for DCQCN, too).
        increase: Rate added after a round trip without a mark. Default 1 Gb/s (the same file, and HPCC's simulator).
        min_rate: Smallest rate. Default 100 Mb/s (the same file).
        window: Largest amount of data in flight. Default one bandwidth-delay product of the pair of hosts; the study
            uses the largest one of the fabric.
    """

    kind: ClassVar[str | None] = "dctcp_rate"
    gain: float | None = None
    increase: Rate | None = None
    min_rate: Rate | None = None
    window: Window | None = None


@dataclass(kw_only=True, repr=False)
class HpccCc(Table):
    """HPCC: window and rate by the utilisation of the busiest port, which switches report. Only in simulations.

    Args:
        base_rtt: T: round-trip time of the idle network, the same for all flows. Absent: the longest of all pairs of
            hosts.
        increase: W_AI as a rate: step by which the rate grows. Absent: 10 Mb/s for each 25 Gb/s of the line (run.py).
        max_stage: maxStage: increases by a step in a row, one a round trip, before the rate follows the utilisation
            again. Default 5 (SIGCOMM 2019; run.py of the authors' simulator has 0).
        min_rate: Smallest rate. Absent: a hundredth of the line rate (run.py: 1 Gb/s at 100 Gb/s).
        reaction: Acknowledgements that change the rate. Default "every_ack".
        utilisation: eta: utilisation at which the busiest port is held. Default 0.95 (SIGCOMM 2019).
    """

    kind: ClassVar[str | None] = "hpcc"
    base_rtt: Time | None = None
    increase: Rate | None = None
    max_stage: int | None = None
    min_rate: Rate | None = None
    reaction: HpccReaction | None = None
    utilisation: float | None = None


@dataclass(kw_only=True, repr=False)
class MswiftCc(Table):
    """MSwift: Swift on the median of delays, for packets sprayed over paths. Implemented from a second-hand
    description.

    Args:
        median_windows: Number of windows of packets over whose delays the median is taken, at least one packet and at
            most 1,024. Default 0.5.
        patience: Acknowledgements in a row above the target before the window shrinks. Default 5; with 1 it shrinks at
            once.
        swift: Parameters of Swift.
    """

    kind: ClassVar[str | None] = "mswift"
    median_windows: float | None = None
    patience: int | None = None
    swift: Swift | None = None


@dataclass(kw_only=True, repr=False)
class NsccCc(Table):
    """NSCC, that of Ultra Ethernet: a window in bytes, driven by delay and marks together.

    Args:
        apply_packets: Packets acknowledged after which increases are applied. Default 8.
        collapse_delay: Quick adapt: queueing delay, in targets, above which it counts like a trim. Absent: 4; with
            profile "ue1.0" and switches that trim, no delay counts like a trim.
        collapse_share: Quick adapt: fraction of the largest window below which few bytes were acknowledged. Default
            0.125.
        constant_increase: eta: packets added once per round trip, whatever the delay. Default 0.15.
        decrease: gamma: decrease per relative excess of the average delay over the target. Default 0.8.
        delay_gain: Weight of the newest queueing delay in its average. Default 0.0125.
        delay_target: Target of the queueing delay, in idle round-trip times. Absent: 0.75 if switches trim, otherwise
            1.
        fair_increase: fi: packets added per round trip if unmarked above the target. Default 5.
        fast_delay: Queueing delay below which nothing counts as queued. Default 1 us, whatever the network.
        fast_increase: Fraction of the acknowledged bytes that is added once a window of them had a queueing delay below
            `fast_delay`. Default 0.25.
        last_hop_trims: Effect of packets trimmed at the last hop. "cut" (default): the window loses their bytes.
            "spare": it does not, because receivers grant credit and control the last hop themselves.
        max_bdp: Largest window, in bandwidth-delay products; also the first window. Default 1.5.
        max_decrease: Largest decrease at once, as a fraction of the window. Default 0.5.
        median_packets: Largest number of packets of the last half window whose median queueing delay replaces that of
            each packet (MNSCC: 4, from a second-hand description). Absent: no median.
        network_rtt: Round-trip time of the idle network, from which target, largest window and increases are computed.
            Absent: that of the pair's longest path. uet-htsim uses that of the network's longest path for every pair.
        profile: Rules where simulator and specification differ: "htsim" (default) or "ue1.0".
        proportional_increase: alpha: packets added per round trip without a queue; below the target in proportion to
            the rest of it. Default 4.
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
    """SMaRTT, NSCC's ancestor: a window in bytes, driven by delay and marks. Implemented from a second-hand
    description.

    Args:
        fair_decrease: Fraction of the marked bytes that a window of one bandwidth-delay product loses. Default 0.5.
        fair_increase: Bandwidth-delay products added per window acknowledged without marks. Default 0.02.
        fast_delay: Queueing delay up to which nothing counts as queued. Default 1 us, whatever the network.
        fast_increase: Packets added per acknowledged packet once a window of them had a queueing delay of at most
            `fast_delay`. Default 1.
        mark_gain: Weight of the newest acknowledgement in the fraction of marked ones. Default 0.05.
        mark_share: Fraction of marked acknowledgements above which marks shrink the window. Default 0.3.
        max_bdp: Largest window, in bandwidth-delay products; also the first window. Default 1.5 (NSCC).
        multiplicative_decrease: Fraction of the marked bytes that the window loses per relative excess of the
            round-trip time over the target. Default 1.
        proportional_increase: Packets added per acknowledged packet in a round trip, times the relative rest of the
            target. Default 2.
        rtt_target: Target of the round-trip time, in idle round-trip times; also the interval of quick adapt. Default
            1.5.
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
        collapse_delay: Queueing delay, in targets, that reduces the window to the packets acknowledged since the last
            check, like a loss. Default 4 (NSCC; the paper's value is unknown to us).
        constant_increase: eta: packets added per base round-trip time, whatever the delay. Default 0.15.
        decrease: gamma: decrease per relative excess of the average delay over the target. Default 0.8.
        delay_gain: Weight of the newest queueing delay in its average. Default 0.0125 (NSCC; the paper's value is
            unknown to us).
        delay_target: Target of the queueing delay, in idle round-trip times of the pair of hosts. Default 1. The
            simulator takes the round-trip time from the topology; real hosts measure it, the delay of hosts included.
        fair_increase: beta: packets added per round trip above `high_delay`. Default 5.
        high_delay: Queueing delay, in targets, from which unmarked packets earn `fair_increase`. Default 3; text and
            table of the paper have 2 and 3.
        max_bdp: Largest window, in bandwidth-delay products; also the first window. Default 1.5 (NSCC).
        max_decrease: Largest decrease at once, as a fraction of the window. Default 0.5.
        proportional_increase: alpha: packets added per round trip without a queue; below the target in proportion to
            the rest of it. Default 4.
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
        decrease: beta: decrease per relative excess of the delay over the target. Default 0.8 (SIGCOMM 2020).
        hop_scaling: Computes the target from a base and a term for each hop, instead of the idle round-trip time and
            `queue_target`. Absent: not used. Also not used if the number of hops is unknown, as on real hosts.
        increase: ai: packets added per round trip. Default 1 (SIGCOMM 2020).
        increase_over: Round trip in which the window grows by `increase`, if delays are measured over a part of the
            path only. Default "path".
        max_bdp: Largest window, in bandwidth-delay products. Default 2: with one, the line idles where acknowledgements
            wait behind packets. The flow starts with one bandwidth-delay product.
        max_decrease: max_mdf: largest decrease at once, as a fraction of the window. Default 0.5 (SIGCOMM 2020).
        min_packets: Smallest window, in packets. Default 0.001 (SIGCOMM 2020).
        min_rate: Rate that the smallest window supports over the idle path. Absent: a thousandth of the line rate. Over
            a WAN of a millisecond `min_packets` is a packet per second, from which no window recovers. 0bps: no such
            bound.
        queue_target: Queueing delay allowed to a large window. With spraying it must cover the spread between paths, or
            every round trip contains a packet above the target. Absent: the time of 32 full packets on a port of the
            host, the scale of random queues at any rate: 10.8 us with packets of 4,096 B at 100 Gb/s.
        scaling_max_packets: fs_max_cwnd: window, in packets, from which flow scaling adds nothing. Default 100 (SIGCOMM
            2020).
        scaling_min_packets: fs_min_cwnd: window, in packets, at and below which flow scaling adds its full range.
            Default 0.1 (SIGCOMM 2020).
        scaling_range: fs_range: largest addition of flow scaling to the target. Absent: four times the queueing delay
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
        edge_updates: Answers of the edge of a site that update the rate: "every" (default) or "per_round_trip".
        gain: Weight of the newest sample in the average of differences, 0 to 1.
        hyper_after: Increases in a row after which further ones add `hyper_factor` steps.
        hyper_factor: Steps an increase adds from then on (hyperactive increase).
        min_rate: The rate never falls below this.
        min_rtt: Round-trip time by which differences are divided to make the gradient.
        preset: Preset that supplies the values below unless they are set: "hpcc" (default), "paper", "erpc", "near".
        step: delta: increase of the rate by a step.
        step_scale: Line rate for which `step` is given; it grows in proportion. 0bps: it is absolute.
        t_high: T_high: above it the rate always falls.
        t_low: T_low: below this round-trip time the rate always rises.
        window: Bound on bytes in flight: "unlimited", { bdp = 1.0 } or { packets = 64 }.
    """

    kind: ClassVar[str | None] = "timely"
    beta: float | None = None
    edge_updates: EdgeUpdates | None = None
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
class OffCnpPolicy(Table):
    """No notifications."""

    kind: ClassVar[str | None] = "off"


@dataclass(kw_only=True, repr=False)
class OnMarkCnpPolicy(Table):
    """One for packets marked Congestion Experienced.

    Args:
        interval: Shortest time between two notifications for a queue pair (DCQCN's N). Default 0s: one notification for
            every marked packet.
    """

    kind: ClassVar[str | None] = "on_mark"
    interval: Time | None = None


@dataclass(kw_only=True, repr=False)
class OnMarkOrGapCnpPolicy(Table):
    """One for marked packets, and for packets that arrive ahead of a gap. RoCE adapters take a gap as a sign of loss
    and notify even if only the missing packet is retransmitted. In the ConWeave simulator a selective acknowledgement
    of a gap carries the notification bit. Under DCQCN reordering then reduces the rate. With go-back-N, which drops
    packets behind a gap, the notification accompanies the NACK, one per gap.

    Args:
        interval: Shortest time between two notifications for a queue pair (DCQCN's N). Default 0s: one notification for
            every marked packet.
    """

    kind: ClassVar[str | None] = "on_mark_or_gap"
    interval: Time | None = None


@dataclass(kw_only=True, repr=False)
class ConWeave(Table):
    """Parameters of ConWeave. The defaults are those of its authors' simulator (conweave-ns3, run.py) for two tiers and
    a lossless fabric. For three tiers that simulator has 64 us, 600 us and 1 ms for `flush_extra`, `flush_default` and
    `idle_after`. Times are at most 1 s.

    Args:
        entries: Number of flows that a switch can track as the sender's switch, and as many as the receiver's switch. A
            power of two, at least 4. Packets of further flows are forwarded by hash. Default 16,384 (ours).
        flush_default: Expected time from the first held packet to the arrival of the TAIL, if no packet of the old path
            has arrived. Default 200 us.
        flush_extra: Time by which held packets wait beyond the expected arrival of the TAIL, the last packet before
            them. Default 16 us.
        idle_after: Time without a packet after which a flow counts as idle: it has no packet in flight and may change
            its path at once. Above 0. Default 300 us.
        path_pause: Time for which a switch avoids a path after a notification of its congestion. Default 16 us.
        reorder_queues: Number of flows whose packets can be held for one port at a time. Packets of further flows pass
            out of order. Default 31 (ours: all but one of 32 queues of a port).
        reply_after: Idle round trip to which `reply_extra` is added: "way" (default) or "shortest". If all paths have
            the same delay, the two hardly differ.
        reply_extra: Time beyond the idle round trip after which the reply to a probe is late. Default 4 us: 50 kB at
            100 Gb/s.
        stale_after: Time without a packet after which the receiver's switch may reuse the table entry of a flow, above
            0. Default 2 ms.
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
        ageing: Time after which a metric that was not updated counts as 0, above 0. Default 10 ms (CONGA, section 3.3).
        counts: Bytes that the metrics count: "sent" (default), or "routed" as in conweave-ns3.
        dre_alpha: Share of the estimate that each discount removes, 0.001 to 1. Default 0.125.
        dre_interval: Interval at which the estimate of a link's load is discounted, above 0. Default 20 us: with the
            default `dre_alpha` this averages over 160 us, as in the CONGA paper (section 3.6). The class in
            conweave-ns3 has 200 us and 0.2. Its program `network-load-balance.cc` sets 50 us and 0.2, which averages
            over 250 us, and ages metrics after 500 us. The study of LAPS has 200 us and 0.2.
        entries: Number of flowlets that a leaf can distinguish: entries of its table, a power of two. Default 65,536
            (CONGA, section 3.4).
        gap: Idle time of a flow after which its next packet begins a flowlet, above 0. Default 50 us (the evaluation of
            LAPS; that of ConWeave has 100 us, the CONGA paper 500 us).
        metric_bits: Number of bits of a congestion metric, 1 to 8. Default 3 (CONGA, section 3.6).
        samples: Number of paths compared for each flowlet, consecutive ones from a random position in the list of
            paths. 0: all paths. Default 0 (CONGA, section 3.5); conweave-ns3 and the study of LAPS have 4.
        stay: Keeps a flowlet on the path of the one before it unless another path is better. Default true (CONGA,
            section 3.5). With false, as in conweave-ns3 and the study of LAPS, the choice among equally good paths is
            random.
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
    """Receivers grant credit, and senders send as far as they have credit. Default: Ultra Ethernet's receiver-based
    congestion control (RCCC), as in uet-htsim 40ccb05.

    Args:
        ask: Request of a sender that has credit from several receivers: "shared" (RCCC, default) asks each receiver for
            its share only, "whole" asks each for all it could use.
        cost: Bytes of the receiver's link that a grant occupies in pacing: "granted" (RCCC, default) the bytes that it
            grants; `{ packet = "38B" }` (EQDS, NDP) also the headers of a packet and the given bytes.
        demand: Rule for grants. "target" (RCCC, default): at most what is missing to the pull target. "full" (EQDS):
            full grants while anything is missing, and first of all one packet for each trimmed one. "arrivals" (NDP):
            one grant for each packet that arrives, whole or trimmed, up to the pull target.
        fabric: Reduction of grants if the fabric is the bottleneck and not the receiver's link: "off" (default), or `{
            paced = {} }`, which is made for `switch.ecn.last_hop = "leave"`.
        grant: Quanta of a grant, 1 to 65535. Default 64 (RCCC), which are 16 KiB.
        idle: Grants to senders that want nothing, while no other sender wants credit, up to a window beyond their
            target: "on" (RCCC, EQDS; default) or "off".
        pace: Share of the receiver's link at which grants are paced, above 0, at most 2. Default 0.99 (RCCC).
        quantum: Unit of credit (quantum): `{ bytes = "256B" }` is a number of bytes on the wire, headers included;
            "packet" is a packet of any size. Default `{ bytes = "256B" }` (RCCC).
        unused: Treatment of the rest of the first window that has not left when the receiver first responds: "lapses"
            (RCCC, EQDS; default) or "stays" (NDP).
        window: Data that a new queue pair sends without credit, and also the largest request and the largest stored
            credit: `{ bdp = 1.5 }` in bandwidth-delay products (RCCC, default), or `{ packets = 50 }`.
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
        memory: Number of best queues remembered from the packets before, 0 or 1. Default 1 (DRILL(2,1)).
        samples: Number of queues sampled at random for each packet, 1 to 64. The variant "published" draws each by
            itself, so that two may be the same. Default 2 (DRILL(2,1), the choice of its paper).
        variant: Variant of DRILL: "published" (default), or "conweave-ns3", as in that simulator.
    """

    memory: int | None = None
    samples: int | None = None
    variant: DrillVariant | None = None


@dataclass(kw_only=True, repr=False)
class EcnChange(Table):
    """Changed fields of `switch.ecn`.

    Args:
        at: Replaces `switch.ecn.at`.
        enabled: Replaces `switch.ecn.enabled`.
        kmax: Replaces `switch.ecn.kmax`.
        kmin: Replaces `switch.ecn.kmin`.
        last_hop: Replaces `switch.ecn.last_hop`.
        pmax: Replaces `switch.ecn.pmax`.
        reference_rate: Replaces `switch.ecn.reference_rate`.
        thresholds: Replaces `switch.ecn.thresholds`.
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
class Ecn(Table):
    """RED on the instantaneous egress queue, marking instead of dropping. Packets are never marked up to `kmin`, with a
    probability that rises linearly to `pmax` from there to `kmax`, and always above `kmax` (DCQCN, SIGCOMM'15).

    Args:
        at: Time at which the queue is compared with the thresholds. Default "dequeue", as in HPCC's switch.
        enabled: Enables marking in switches. Default true.
        kmax: Upper threshold at `reference_rate`. Default 1600 KB at 100 Gb/s (HPCC run.py: 16 KB a Gb/s).
        kmin: Lower threshold at `reference_rate`, at most `kmax`. Default 400 KB at 100 Gb/s (HPCC run.py: 4 KB a
            Gb/s).
        last_hop: Marking by ports that lead to hosts. Default "mark". "leave" is for receivers that grant credit and
            manage their own link (Ultra Ethernet with RCCC).
        pmax: Marking probability at `kmax`, 0 to 1. Default 0.2 (HPCC run.py).
        reference_rate: Port rate to which `kmin` and `kmax` refer, above 0. Default 100 Gb/s.
        thresholds: Scaling of the thresholds at ports of other rates. Default "by-rate".
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
    """External switches, which join data centres.

    Args:
        buffer: Packet memory that all ports of an external switch share, 64 KB to 4.29 GB. Default 512 MB: a pause of
            500 us at 400 Gb/s is 25 MB, and by default nothing is paused across the WAN.
        ndt: Near-destination throttling. Absent: off.
        nsf: Near-source feedback. Absent: off.
    """

    buffer: Size | None = None
    ndt: Ndt | None = None
    nsf: Nsf | None = None


@dataclass(kw_only=True, repr=False)
class PacedFabricControl(Table):
    """All grants are paced at a share of the link. Marks and trims lower the share, their absence raises it.

    Args:
        paced: Control of the share of the link at which a receiver grants: uet-htsim's control of oversubscribed trees
            (`oversubscribed_cc`, 40ccb05), whose values are the defaults.
    """

    paced: FabricPace | None = None


@dataclass(kw_only=True, repr=False)
class FabricPace(Table):
    """Control of the share of the link at which a receiver grants: uet-htsim's control of oversubscribed trees
    (`oversubscribed_cc`, 40ccb05), whose values are the defaults.

    Args:
        decrease: Relative decrease of the share per unit by which the fraction of marked packets exceeds `marked`.
            Default 0.5.
        every_rtts: Interval between changes of the share, in round trips of the idle network, varied at random by up to
            a quarter. Default 1.5.
        gain: Weight of the newest value in that average. Default 0.5.
        increase: Increase of the share if the fraction of marked packets is at most `marked` and no packet was trimmed
            before the last hop. Doubles each time in a row while no packet at all is marked. Default 0.01.
        least: Smallest share, above 0, at most 1. Default 0.225: 0.9 over the oversubscription of 4:1, as in uet-htsim.
            A much smaller value grants too little: at 0.01 a permutation over 4:1 takes twice as long.
        marked: Average fraction of marked packets that is still acceptable. Default 0.3.
    """

    decrease: float | None = None
    every_rtts: float | None = None
    gain: float | None = None
    increase: float | None = None
    least: float | None = None
    marked: float | None = None


@dataclass(kw_only=True, repr=False)
class LinkDownFault(Table):
    """A link loses all packets, queued or in flight, from `at` until `up_at`. If one direction fails, the other works
    until routes avoid the link, which they do in both directions.

    Args:
        at: Start of the fault.
        link: Link, named by its ends: "tor0-agg1". One direction of it: "tor0->agg1". Link of a scale-up network:
            "srv0.gpu0-srv0.chip1".
        up_at: Time at which the link comes back. Absent: never.
    """

    kind: ClassVar[str | None] = "link-down"
    at: Time
    link: str
    up_at: Time | None = None


@dataclass(kw_only=True, repr=False)
class LinkFlapFault(Table):
    """A link goes down and up repeatedly.

    Args:
        at: Time at which the link goes down first.
        down_for: Duration of each failure, above 0.
        link: Link or direction, named by its ends.
        times: Number of failures, 1 to 100000.
        up_for: Time between the end of a failure and the next one, above 0.
    """

    kind: ClassVar[str | None] = "link-flap"
    at: Time
    down_for: Time
    link: str
    times: int
    up_for: Time


@dataclass(kw_only=True, repr=False)
class LinkRateFault(Table):
    """A link runs at another rate. Of several such faults at once, the smallest rate holds.

    Args:
        at: Start of the fault.
        link: Link or direction, named by its ends.
        rate: Rate during the fault, above 0.
        until: End of the fault. Absent: never.
    """

    kind: ClassVar[str | None] = "link-rate"
    at: Time
    link: str
    rate: Rate
    until: Time | None = None


@dataclass(kw_only=True, repr=False)
class LinkDelayFault(Table):
    """A link has another propagation delay. Packets on a link never overtake each other. Of several such faults at
    once, the longest delay holds.

    Args:
        at: Start of the fault.
        delay: Propagation delay during the fault.
        link: Link or direction, named by its ends.
        until: End of the fault. Absent: never.
    """

    kind: ClassVar[str | None] = "link-delay"
    at: Time
    delay: Time
    link: str
    until: Time | None = None


@dataclass(kw_only=True, repr=False)
class LinkLossFault(Table):
    """Each packet on a link is lost with a fixed probability (Bernoulli). Several such faults at once are independent.

    Args:
        link: Link or direction, named by its ends.
        probability: Probability of the loss of a packet, 0 to 1.
        at: Start of the fault. Default: the start of the run.
        until: End of the fault. Absent: never.
    """

    kind: ClassVar[str | None] = "link-loss"
    link: str
    probability: float
    at: Time | None = None
    until: Time | None = None


@dataclass(kw_only=True, repr=False)
class LinkCorruptionFault(Table):
    """Each packet on a link arrives with a bad checksum with a fixed probability. The node that receives it drops it.
    Several such faults at once are independent.

    Args:
        link: Link or direction, named by its ends.
        probability: Probability of the corruption of a packet, 0 to 1.
        at: Start of the fault. Default: the start of the run.
        until: End of the fault. Absent: never.
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
        at: Start of the fault.
        switch: Name of the switch, or of a chip of a scale-up network: "srv0.chip1".
        up_at: Time at which the switch comes back, with empty queues. Absent: never.
    """

    kind: ClassVar[str | None] = "switch-down"
    at: Time
    switch: str
    up_at: Time | None = None


@dataclass(kw_only=True, repr=False)
class PauseStormFault(Table):
    """A broken NIC sends pause frames without end for all data classes of its link. A switch without PFC ignores them.

    Args:
        at: Start of the fault.
        host: Name of the host.
        until: Time at which the pause frames stop. Absent: never.
    """

    kind: ClassVar[str | None] = "pause-storm"
    at: Time
    host: str
    until: Time | None = None


@dataclass(kw_only=True, repr=False)
class FlowSpec(Table):
    """One flow of an inline list.

    Args:
        dst: Receiving host: a number or a name.
        size: Payload, 1 B to 4 GiB.
        src: Sending host: a number or a name.
        after: Ids of flows that must end before this one begins. An end counts when the sender of this flow learns of
            it. If it is the receiver of the other flow, that is the delivery. If it is the sender of the other flow,
            that is the last acknowledgement. Otherwise it is one notification (`network.task_notification`) after the
            delivery. Default: none.
        connection: Number of the connection. Flows with the same number between the same hosts share it. Default: a
            connection of its own.
        delay: Delay between the last of these ends and the begin of this flow (default 0).
        id: Name by which other flows refer to this one. Default: none.
        start: Earliest start, since the start of the workload (default 0).
    """

    dst: FlowHost
    size: Size
    src: FlowHost
    after: list[str] | None = None
    connection: int | None = None
    delay: Time | None = None
    id: str | None = None
    start: Time | None = None


@dataclass(kw_only=True, repr=False)
class ForwardingConfig(Table):
    """Load balancing in switches: the choice among equal-cost next hops.

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
    """The bytes that it grants, and for the packet that it is meant for its headers, as far as these are not granted,
    and these bytes.

    Args:
        packet: a size with its unit, such as "8MB" or "4KiB"
    """

    packet: Size | None = None


@dataclass(kw_only=True, repr=False)
class HopScaling(Table):
    """Topology-based scaling of the target (section 3.2): `base + hops * per_hop`.

    Args:
        base: Constant part of the target. Default 200 ns (Reflex, section II-C).
        per_hop: Addition for each hop. Default 1 us (Reflex, section II-C). The papers leave open what a hop is; here
            it is every node that the round trip visits, including the hosts at the ends. With links of 1 us the target
            lies above the idle round-trip time with no smaller number.
    """

    base: Time | None = None
    per_hop: Time | None = None


@dataclass(kw_only=True, repr=False)
class UniformJitter(Table):
    """A factor from a uniform distribution.

    Args:
        high: Largest factor, at most 1000.
        low: Smallest factor, above 0.
    """

    kind: ClassVar[str | None] = "uniform"
    high: float
    low: float


@dataclass(kw_only=True, repr=False)
class LogNormalJitter(Table):
    """A factor from a log-normal distribution with mean 1: most computations are a little faster, some are much slower.

    Args:
        sigma: Standard deviation of the logarithm, 0 to 2.
    """

    kind: ClassVar[str | None] = "log-normal"
    sigma: float


@dataclass(kw_only=True, repr=False)
class PausesJitter(Table):
    """Occasional pauses of a computation: a garbage collection, a page fault, a clock change.

    Args:
        lasts: Duration of a pause.
        probability: Probability that a computation pauses, 0 to 1.
    """

    kind: ClassVar[str | None] = "pauses"
    lasts: Time
    probability: float


@dataclass(kw_only=True, repr=False)
class LetFlow(Table):
    """Parameters of LetFlow.

    Args:
        entries: Number of flowlets that a switch can distinguish: entries of its table, a power of two. Flows whose
            hashes collide share a flowlet. Default 65,536 (the LetFlow paper, section 4).
        gap: Idle time of a flow after which its next packet begins a flowlet, above 0. Default 50 us (the evaluation of
            LAPS; that of ConWeave has 100 us, the LetFlow paper 500 us for slower networks).
    """

    entries: int | None = None
    gap: Time | None = None


@dataclass(kw_only=True, repr=False)
class LinkFor(Table):
    """Settings of the links that a table selects. Absent fields are those of earlier tables for the link, or of the
    topology. At least one field besides `match` is given.

    Args:
        match: Names of the links, with the ends in either order: "leaf0-spine1", or a pattern in which `*` stands for
            any characters, `?` for one, and `[0-7]` for a number: "srv3.gpu*-p2.leaf*". With `->` in place of the dash,
            the direction from the first end to the second: "leaf0->spine*". Parallel links are selected together, or
            one of them by its number from 0: "leaf0-spine1#1".
        delay: Propagation delay of each direction.
        error_rate: Probability that a packet is lost, 0 to 1.
        rate: Rate of each direction, above 0.
    """

    match: str
    delay: Time | None = None
    error_rate: float | None = None
    rate: Rate | None = None


@dataclass(kw_only=True, repr=False)
class ListedLink(Table):
    """Link of a scale-up network that is given as a list.

    Args:
        gpus: The two GPUs, counted within the domain from 0.
        rate: Rate in each direction.
    """

    gpus: list[int]
    rate: Rate


@dataclass(kw_only=True, repr=False)
class ModelFile(Table):
    """File with the architecture of a model.

    Args:
        file: `config.json` of Hugging Face transformers, relative to the scenario.
    """

    file: str


@dataclass(kw_only=True, repr=False)
class Scheme(Table):
    """A scheme with changes: its fields replace those of the base.

    Args:
        base: Name of the scheme to start from.
        acks: Acknowledgements of the receiver.
        cnp: Congestion notifications of the receiver.
        credit: Receiver credit, without which senders send no more than a first window. Absent: no credit.
        forwarding: Load balancing that the switches of a simulated fabric must perform for this scheme. Absent: no
            requirement; switches then use `switch.forwarding.kind`, or ECMP hashing if that is absent too.
        name: Name in results. Default: the name of `base`, followed by "*" if any field was changed.
        paths: Paths (UDP source ports) that each queue pair may choose from, for each NIC port that leads to its peer.
        policy: Policy: decides when a packet may leave, and on which path.
        ports: Choice of these source ports. Default "any".
        queue_pairs: Queue pairs over which a message is split evenly (QP scaling); 1 in all other schemes.
        recovery: Loss recovery.
        reordering: Reports of the receiver about packets that arrive ahead of a gap. Default: none.
        service: Transport service: the peers that a queue pair serves. Default "connection": one process at the peer.
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
        active_for: Time after its last packet or acknowledgement for which a flow is active. More than `max_pause`.
            Default 1 ms.
        alpha: alpha: largest share of congested flows among the active flows without a pause. Above it the controlled
            queues pause. Above 0, at most 1. Default 0.7 (Reflex, table I).
        forget_after: Time without a packet after which a flow is removed from the table. More than `active_for`.
            Default 10 ms.
        guards: Order guards: the rule that keeps a flow's packets in order when it changes queues. Default "both".
        max_flows: Largest number of flows in the table, 1 to 16777216. Further flows are not throttled. Default 65536.
        max_pause: T_maxpause: longest duration of a pause, above 0. Default 500 us (Reflex, table I).
        min_active: Number of active flows below which there is no pause. Default 1, the literal reading: one congested
            flow out of one is paused. With 4 or more a few flows are not stopped.
        stamp: Time stamp that hosts read in acknowledgements. Default "renewed".
        threshold: T_dst_thresh: round trip from the switch to the receiver above which a flow is congested. Absent: the
            idle round trip plus six tenths of it or eight packets, whichever is more. On the fabric of Reflex that is
            10 us (table I: 10 us).
        weight: N_throttle: number of packets of the normal queue for one of the controlled queue, on each port into the
            site, 1 to 1000000. Default 8 (Reflex, table I).
    """

    active_for: Time | None = None
    alpha: float | None = None
    forget_after: Time | None = None
    guards: OrderGuards | None = None
    max_flows: int | None = None
    max_pause: Time | None = None
    min_active: int | None = None
    stamp: HostStamp | None = None
    threshold: Time | None = None
    weight: int | None = None


@dataclass(kw_only=True, repr=False)
class Network(Table):
    """Packets: size, headers, and retransmission.

    Args:
        framing: Headers that count on the wire: "rocev2" (default) for RoCEv2 over Ethernet, or "ns3" for the headers
            of the ns-3 RDMA simulators, for comparison with their results.
        mtu: Payload of a full packet, 256 B to 9000 B. Default 4096 B, the largest MTU of InfiniBand verbs.
        nic: Costs of NICs and hosts besides the link: queue-pair contexts, PCIe, cores. Default: absent, and they take
            no time.
        retransmission: Retransmission timer of every queue pair.
        side_channel: Reliable side channel of datagram queue pairs.
        source_route: Encoding of a route that the source has chosen (`routing.kind = "source"`) in each packet. "none"
            adds no bytes. "anchors" lists the few switches that determine the route, 4 bytes each. "hops" lists the
            port at every switch, 2 bytes each. "segments" lists every anchor with 16 bytes, as in SRv6. Each list has 8
            more bytes of header. Default "hops", or "none" with `framing = "ns3"`.
        task_notification: Time until a host knows that a task has ended at another host. The receiver of a message
            knows of its delivery at once, the sender with the acknowledgement of its last byte. A task at any other
            host that waits for the message begins this much later, and so does a task that waits for a barrier. At
            least the delay of the shortest link. Default 1 us (ours: about a small message within a data centre), or
            the delay of the shortest link if that is longer.
        verb: Verb of all messages: "write" (default), as in collective libraries, or "send".
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
    """Costs of a NIC and its host beyond the link: queue-pair contexts, PCIe, and host software. Software costs apply
    only to receivers of datagrams; the NIC handles all other packets by itself.

    Args:
        entry_bytes: Bytes of work requests or completions that cross PCIe with each packet. Default 64 B.
        packet_cost: Time that a core takes for a datagram that is the next of its flow. Each queue pair has its own
            core. Default 40 ns (ours: two cache misses; ERD shows a cost in Fig. 9 but no number).
        pcie_latency: One-way latency of PCIe. Default 2 us (ERD, section 4).
        pcie_rate: Rate of PCIe, above 0. Default 256 Gbit/s (ERD, table 2).
        post_crossings: Number of PCIe crossings between the post of a message and its first transmission, 1 to 16: 1 if
            the doorbell carries the work request, 3 if the NIC reads it from memory. Default 1.
        qp_fits: Number of queue-pair contexts in use up to which the NIC sends at line rate: the size of its context
            cache. Default 1000 (ERD, Fig. 1a).
        qp_floor: Fraction of line rate that remains with `qp_thrash` contexts or more, above 0, at most 1. 1.0 means
            that contexts cost nothing. Default 0.5 (ERD, Fig. 1a).
        qp_thrash: Number of contexts in use from which the NIC is slowest. Between `qp_fits` and this number it slows
            down with the logarithm of the number. At least `qp_fits`. Default 4000 (our reading of ERD, Fig. 1a).
        reorder_buffer: Payload of out-of-order datagrams that the NIC can hold. With a buffer, the NIC restores the
            order before software handles the datagrams, which then costs no `reorder_cost`, and drops datagrams that do
            not fit. Default 0 B: software places datagrams out of order, as in ERD.
        reorder_cost: Additional time for a datagram that is out of order. Default 60 ns (ours).
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
    """Parameters of [`Nscc`]. Increases are given for 100 Gb/s and 12 us; in other networks they scale with the
    bandwidth-delay product.

    Args:
        apply_packets: Packets acknowledged after which increases are applied. Default 8.
        collapse_delay: Quick adapt: queueing delay, in targets, above which it counts like a trim. Absent: 4; with
            profile "ue1.0" and switches that trim, no delay counts like a trim.
        collapse_share: Quick adapt: fraction of the largest window below which few bytes were acknowledged. Default
            0.125.
        constant_increase: eta: packets added once per round trip, whatever the delay. Default 0.15.
        decrease: gamma: decrease per relative excess of the average delay over the target. Default 0.8.
        delay_gain: Weight of the newest queueing delay in its average. Default 0.0125.
        delay_target: Target of the queueing delay, in idle round-trip times. Absent: 0.75 if switches trim, otherwise
            1.
        fair_increase: fi: packets added per round trip if unmarked above the target. Default 5.
        fast_delay: Queueing delay below which nothing counts as queued. Default 1 us, whatever the network.
        fast_increase: Fraction of the acknowledged bytes that is added once a window of them had a queueing delay below
            `fast_delay`. Default 0.25.
        last_hop_trims: Effect of packets trimmed at the last hop. "cut" (default): the window loses their bytes.
            "spare": it does not, because receivers grant credit and control the last hop themselves.
        max_bdp: Largest window, in bandwidth-delay products; also the first window. Default 1.5.
        max_decrease: Largest decrease at once, as a fraction of the window. Default 0.5.
        median_packets: Largest number of packets of the last half window whose median queueing delay replaces that of
            each packet (MNSCC: 4, from a second-hand description). Absent: no median.
        network_rtt: Round-trip time of the idle network, from which target, largest window and increases are computed.
            Absent: that of the pair's longest path. uet-htsim uses that of the network's longest path for every pair.
        profile: Rules where simulator and specification differ: "htsim" (default) or "ue1.0".
        proportional_increase: alpha: packets added per round trip without a queue; below the target in proportion to
            the rest of it. Default 4.
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
        clock_ahead: Lead of the switch's clock over the clocks of the hosts. The delay from the host is measured with
            both clocks. Default 0.
        cool_mode: Events that `cooling` counts: answers or packets. Default "answers".
        cooling: N_cool: number of answers to a flow after it has cooled down. Default 5 (Reflex, table I).
        forget_after: Time without a packet after which a flow is removed from the table, above 0. Default 10 ms.
        interval: T_interval: shortest time between answers to a flow. Absent: `threshold` (Reflex, table I: 5 us for
            TIMELY, as its threshold; 3 us for Swift).
        max_flows: Largest number of flows in the table, 1 to 16777216. Further flows get no answers. Default 65536.
        threshold: T_src_thresh: delay from the NIC to the WAN port above which data is hot. Absent: the idle delay plus
            six tenths of it or eight packets, whichever is more. On the fabric of Reflex that is 5.2 us (table I: 5
            us).
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
    """Observations recorded beyond one record for each flow, job and link.

    Args:
        departures: Collects statistics of data packets that leave their hosts, written to `summary.json`: the gaps
            between packets of a message and, if sources choose paths, the bytes by path length. Does not apply to
            datagram queue pairs. Default false.
        flows: Number of messages that are followed over time, at most 1000. The largest messages are followed; of equal
            ones, the first. A sample holds the throughput, the bytes still to arrive, the rate that the policy allows,
            the bytes in flight, and the distribution over paths of the packets that arrived since the sample before. If
            the scheme has several queue pairs, the distribution is over these. Each distribution lists the 32 entries
            with the most packets. Does not apply to datagram queue pairs. Default 0.
        follow: Numbers of further messages that are followed over time, as in column `flow` of flows.parquet. The
            numbers are the same in each run of a scenario. `flows` and `follow` together may select at most 1000
            messages. Default: none.
        interval: Time between samples of queues, links and hosts. It doubles whenever there are more than `max_samples`
            instants. Default 5 us; 0s disables samples.
        max_events: Largest number of events of each kind to keep in full. Further events are only counted. Default
            100000.
        max_samples: Largest number of sampled instants to keep, 2 or more. Default 256.
    """

    departures: bool | None = None
    flows: int | None = None
    follow: list[int] | None = None
    interval: Time | None = None
    max_events: int | None = None
    max_samples: int | None = None


@dataclass(kw_only=True, repr=False)
class OwnPathSet(Table):
    """The paths that the topology provides for its sources. In a Dragonfly and in rail networks these are the minimal
    path and the detours that LAPS uses (IEEE ToN 2026). In a torus and a full mesh they follow its dimensions. In other
    topologies they are all shortest paths.

    Args:
        max_paths: Largest number of paths of a pair, 1 to 65535. If there are more, evenly spaced ones are selected.
            Default 256.
    """

    kind: ClassVar[str | None] = "own"
    max_paths: int | None = None


@dataclass(kw_only=True, repr=False)
class AllShortestPathSet(Table):
    """All paths with the fewest hops. Parallel links count as different paths.

    Args:
        max_paths: Largest number of paths of a pair, 1 to 65535. If there are more, evenly spaced ones are selected.
            Default 256.
    """

    kind: ClassVar[str | None] = "all-shortest"
    max_paths: int | None = None


@dataclass(kw_only=True, repr=False)
class KShortestPathSet(Table):
    """The `k` paths with the fewest hops that visit no switch twice, for irregular networks. Parallel links count once.

    Args:
        k: Number of paths of a pair, 1 to 256; fewer if there are no more. Default 8, as in Jellyfish (NSDI 2012,
            section 4).
        max_extra_hops: Largest number of hops that a path may have beyond the shortest one, 0 to 62. Default 4.
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
    """Paths of LAPS's simulator, from its `laps-PIT.txt`, with a topology of `kind = "laps"`; see
    `docs/explicit-paths.md`.

    Args:
        path: The file, relative to the scenario file.
    """

    kind: ClassVar[str | None] = "laps"
    path: str


@dataclass(kw_only=True, repr=False)
class Penalties(Table):
    """Parameters of [`Penalties`].

    Args:
        forgives: Paths skipped for a packet whose penalty falls by one: "first" (default) or "each".
        marked: Penalty of a path for a marked packet. Default 1.
        most: Largest penalty of a path. Default 15.
        refused: Penalty of a path for a packet that was trimmed before the last hop, or found lost. Default 4.
        silent: Penalty of a path for a packet that timed out. Default 15.
    """

    forgives: Forgives | None = None
    marked: int | None = None
    most: int | None = None
    refused: int | None = None
    silent: int | None = None


@dataclass(kw_only=True, repr=False)
class PfcChange(Table):
    """Changed fields of `switch.pfc`.

    Args:
        alpha: Replaces `switch.pfc.alpha`.
        enabled: Replaces `switch.pfc.enabled`. Switches at the two ends of a link must agree.
        headroom: Replaces `switch.pfc.headroom`.
        threshold: Replaces `switch.pfc.threshold`.
        xon_gap: Replaces `switch.pfc.xon_gap`.
    """

    alpha: float | None = None
    enabled: bool | None = None
    headroom: Size | None = None
    threshold: PfcThreshold | None = None
    xon_gap: Size | None = None


@dataclass(kw_only=True, repr=False)
class Pfc(Table):
    """Priority flow control (IEEE 802.1Qbb) with a threshold for each ingress port and class.

    Args:
        alpha: Share of the free shared buffer above which an ingress queue sends XOFF, above 0 and at most 1024.
            Default 1/8 (HPCC, ConWeave).
        deadlock_after: Time after which a cycle of paused ports, none of which has sent, ends the run as a deadlock.
            Default 1 ms.
        enabled: Makes the data classes lossless. Default true.
        headroom: Buffer reserved for each ingress port and class for packets that arrive after XOFF was sent. Absent:
            computed from the link as two propagation delays, three frames of 9216 B and the pause frame, which always
            suffices.
        storm_after: Time after which a port that was paused without interruption ends the run as a pause storm. Default
            100 ms.
        threshold: Kind of XOFF threshold of an ingress queue. "dynamic" (default): the share `alpha` of the free shared
            buffer. "static": an equal part of the shared buffer for each port, whatever is free (LAPS).
        xon_gap: Distance below the XOFF threshold at which an ingress queue sends XON. Default 3 KB (HPCC).
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
    """Packets take the paths in laps, which skip paths with penalties for marks, trims and losses (Ultra Ethernet's
    bitmap).

    Args:
        penalties: Parameters of [`Penalties`].
    """

    penalties: Penalties | None = None


@dataclass(kw_only=True, repr=False)
class RecycledPicker(Table):
    """REPS: a path that returned unmarked is taken again, once; without one, a random path.

    Args:
        recycled: Parameters of [`Recycled`]. Defaults are those of uet-htsim.
    """

    recycled: Recycled | None = None


@dataclass(kw_only=True, repr=False)
class MixedPicker(Table):
    """A path that returned unmarked; without one, the bitmap's next path (uet-htsim's default).

    Args:
        mixed: Parameters of [`Penalties`].
    """

    mixed: Penalties | None = None


@dataclass(kw_only=True, repr=False)
class PlbPicker(Table):
    """PLB: another path after several rounds of congestion.

    Args:
        plb: Parameters of [`Plb`].
    """

    plb: Plb | None = None


@dataclass(kw_only=True, repr=False)
class PlacedPool(Table):
    """Pool whose hosts are chosen by a rule, or that shares hosts with other pools.

    Args:
        hosts: Number of hosts, or a list of numbers, names and patterns, or a pattern such as "srv[0-3].gpu*". Default:
            those of `servers`.
        overlaps: Names of pools that may have the same hosts, if hosts are named. Default: none; that pools have a host
            in common is an error.
        placement: Rule by which `servers`, or a number of `hosts`, are chosen among those that no other pool has.
            Default "random".
        servers: Number of whole servers of a cluster. Set either `hosts` or `servers`. Default: none.
        within: Hosts among which the rule chooses: a list of numbers, names and patterns, or a pattern. Default: all
            hosts.
    """

    hosts: PoolHosts | None = None
    overlaps: list[str] | None = None
    placement: PoolPlacement | None = None
    servers: int | None = None
    within: HostList | None = None


@dataclass(kw_only=True, repr=False)
class Plb(Table):
    """Parameters of [`Plb`].

    Args:
        congested_share: K: fraction of marked packets from which a round is congested. Default 0.5 (Linux: 128 of 256).
        forced_rounds: N: congested rounds in a row after which the path changes in any case; 0: never. Default 12
            (Linux).
        idle_rounds: M: congested rounds in a row after which the path changes if nothing is in flight. Default 3
            (Linux).
        suspend_after_timeout: Time after a timeout, which changes the path, for which congestion does not change it
            again. The actual time is random between this and twice this. Default 60 s (Linux): there may be no better
            path, and frequent changes would only reorder.
    """

    congested_share: float | None = None
    forced_rounds: int | None = None
    idle_rounds: int | None = None
    suspend_after_timeout: Time | None = None


@dataclass(kw_only=True, repr=False)
class SplitPolicy(Table):
    """A congestion control and a path picker that are independent of each other.

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
        idle_pool_bdp: Largest pool while there is nothing to send, in bandwidth-delay products. New data then leaves at
            once with the whole pool, on random paths. Default 1.
        increase_step: Additive increase per round trip, as a fraction of the line rate, at the queue target; less if
            the queue is longer. A flow's share of a bottleneck settles near this value over `queue_gain` and the excess
            delay. Default 0.005.
        inflight_bdp: Largest amount in flight, in bandwidth-delay products, plus one packet. Default 1.5.
        late: Excess of a round-trip time over the average from which its acknowledgement releases nothing. "by_base"
            (default): one base round-trip time, the better rule in a data centre. "by_queue": the excess of the average
            over the base, at least one base round-trip time. Real hosts (`pathweave perf`, the lab) use "by_queue",
            because their queues are many base times long.
        near: Excess of a round-trip time over the average, as a fraction of the base, up to which it still counts as
            short. Default 0.05.
        ooo_packets: Delta: an acknowledgement more than this many packets behind the highest releases nothing; 0
            disables the check. Default 64 (UDMP, figure 7).
        pool_bdp: Largest pool, in bandwidth-delay products, at least two packets. Default 0.25.
        queue_gain: kappa: weight of the relative distance from that target in the change of the rate. Default 0.15.
        queue_target_rtts: Queueing delay at which the rate settles, in base round-trip times. The time of four packets
            is added, because shorter queues are noise. Default 0.25.
        rtt_gain: alpha: weight of the newest round-trip time in the average, 0 to 1. Default 0.125. The average only
            distinguishes fast and slow paths; the rate follows low round-trip times.
        severe_rtt: T_high: average of low round-trip times, in base round-trip times, above which every acknowledgement
            limits the rate to line rate x base / average. Default 3.
        step_limit: Largest change of the rate per round trip, as a fraction of the rate. Default 0.5.
    """

    kind: ClassVar[str | None] = "udmp"
    explore: float | None = None
    idle_pool_bdp: float | None = None
    increase_step: float | None = None
    inflight_bdp: float | None = None
    late: UdmpLate | None = None
    near: float | None = None
    ooo_packets: int | None = None
    pool_bdp: float | None = None
    queue_gain: float | None = None
    queue_target_rtts: float | None = None
    rtt_gain: float | None = None
    severe_rtt: float | None = None
    step_limit: float | None = None


@dataclass(kw_only=True, repr=False)
class UdmpPublishedPolicy(Table):
    """UDMP as printed.

    Args:
        explore: p: probability that a packet explores a random path instead of the one it was released for. Default
            0.01.
        kick_after: Time with nothing in flight and no acknowledgement after which one packet is sent. Default 100 us.
        ooo_packets: Delta: an acknowledgement more than this many packets behind the highest releases nothing; 0
            disables the check. Default 64 (UDMP, figure 7).
        rtt_gain: alpha: weight of the newest round-trip time in the average, 0 to 1. Default 0.125. Small values
            deadlock in incast.
        severe_rtt: T_high: average round-trip time, in base round-trip times, above which every acknowledgement limits
            the rate to line rate x base / average. Default 3.
    """

    kind: ClassVar[str | None] = "udmp_published"
    explore: float | None = None
    kick_after: Time | None = None
    ooo_packets: int | None = None
    rtt_gain: float | None = None
    severe_rtt: float | None = None


@dataclass(kw_only=True, repr=False)
class MprdmaPolicy(Table):
    """MP-RDMA: an ECN-driven window, ACK-clocked on the path of the acknowledgement.

    Args:
        burst_timer: Burst timer: a flow that has had nothing to send for this long restarts with at most the initial
            window. Default 0s, which means the base round-trip time.
        decrease: Effect of a mark on the window: "half_packet" (default), "half_window" or "half_window_each_mark".
        explore: p: probability that a packet explores a random path instead of the acknowledgement's. Default 0.01
            (NSDI 2018).
        initial_window_bdp: Initial window, in bandwidth-delay products. Default 1: a RoCE queue pair starts at line
            rate.
        ooo_packets: Delta: an acknowledgement more than this many packets behind the highest is out of order. 0
            disables the check. Default 64 (UDMP, figure 7; NSDI 2018 has 32).
    """

    kind: ClassVar[str | None] = "mprdma"
    burst_timer: Time | None = None
    decrease: Decrease | None = None
    explore: float | None = None
    initial_window_bdp: float | None = None
    ooo_packets: int | None = None


@dataclass(kw_only=True, repr=False)
class MrcPolicy(Table):
    """MRC: paths in turn, each with a state, and the window of NSCC.

    Args:
        active_evs: Number of EVs in use for each NIC port. Default 128 (MRC has 128 to 256). The other paths of the
            queue pair are backups.
        floor_evs: Minimum number of EVs in use while paths are up. Default 8 (ours): one for each of eight planes.
        good_probes: Number of replies to probes in a row that make an EV good again. Default 3 (ours).
        nscc: Congestion window (NSCC).
        planes: Number of planes of the network, at least the number of NIC ports that lead to the peer. Default 1. The
            plane of an EV is its number modulo this.
        probe_rtts: Interval between probes of an EV, in idle round-trip times. Default 8 (ours): long enough for a
            queued probe to return.
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
    """DLBF: a queue pair keeps its path until a packet is marked, and copies the packets that a switch of path would
    delay.

    Args:
        available_for: T_avail: time for which a path without marks counts as available after its last acknowledgement.
            Default 100 us. This is longer than a queue at ECN's upper threshold takes to drain (3,200 KB at 400 Gb/s:
            64 us), so that no delay is used after a full cycle of a queue. The repaired variant uses four round trips
            of the idle network if they are longer, because on a slow or wide network no acknowledgement is younger.
        cc: Congestion control. Default: DCQCN with preset `hpcc`, the same as that of ECMP.
        marked_rate: Effect of a marked packet on the rate. Default "reduced" (the paper).
        on_switch: Packets sent on a new path before its data. Default "copies_and_notices" (the paper).
        scope: Queue pairs whose acknowledgements update the state of the paths. Default "host_pair".
        unavailable_for: T_unavail: time for which a path counts as congested after its last marked acknowledgement.
            Default 200 us, twice `available_for`. The repaired variant uses eight round trips of the idle network if
            they are longer.
        variant: Variant of the algorithm: "repaired" (default) or "published".
    """

    kind: ClassVar[str | None] = "dlbf"
    available_for: Time | None = None
    cc: Cc | None = None
    marked_rate: MarkedRate | None = None
    on_switch: OnSwitch | None = None
    scope: DlbfScope | None = None
    unavailable_for: Time | None = None
    variant: DlbfVariant | None = None


@dataclass(kw_only=True, repr=False)
class RepsPolicy(Table):
    """REPS: recycled entropies, with a window for delay and ECN.

    Args:
        decrease: gamma: decrease per relative excess of the average delay over the target. Default 0.8.
        delay_gain: Weight of the newest queueing delay in its average. Default 0.0125.
        delay_target: Target of the queueing delay, in base round-trip times. Default 0.75.
        explore_bdp: Packets that explore at the start and after a freeze, in bandwidth-delay products. Default 1
            (REPS).
        fair_increase: Packets added per round trip if unmarked but above the target. Default 0.5.
        freeze: Time after a timeout during which no path is explored. Default 100 us.
        max_bdp: Largest window, in bandwidth-delay products; also the first window. Default 1.5.
        max_decrease: Largest decrease at once, as a fraction of the window. Default 0.5.
        proportional_increase: Packets added per round trip without a queue; below the target in proportion to the rest
            of it. Default 4.
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
    """Reflex: a congestion control that, for flows to other sites, uses echoes of the own site's edge.

    Args:
        cc: Congestion control.
        e2e_mode: Effect of the peer's acknowledgements. Default "hold".
        edge_cc: Congestion control of flows that the edge replies to. Absent: `cc`, with thresholds that fit the round
            trip to the edge. TIMELY's T_low and T_high are then 1.6 and 16 times the idle round-trip time to the edge,
            and the gradient's base is that time. Swift computes its target for the section to the edge, and its windows
            grow over that section.
        hold_for: With "hold": time for which an echo is valid. Absent: 1.6 times the idle round-trip time to the edge,
            which is twice the edge's interval between echoes.
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
    """LAPS: path selection by a softmax over one-way delays, and a window. If switches drop packets, also a rate that
    falls when the fastest path is congested.

    Args:
        alpha: beta of the softmax: a path whose delay is longer by 1 / alpha of the unit gets 1/e of the share. With 0
            all paths are equal (random spraying); with a large value only the fastest path is used. The paper gives no
            value, its code has 1. Default 2.5, fitted to the rows of `pathweave paper matrix` reserved for fitting.
            With 5, senders crowd on the path that was fastest a moment ago if all paths are alike (permutations 2 to 5
            % slower). With 1.5, detours cost 1 to 3 % more.
        alpha_unit: Unit in which `alpha` is measured. Default "noise". Near the threshold T all units are the same.
        arithmetic: Arithmetic in which the weights of paths are computed: "float" (default) or "fixed".
        decrease: Target of a decrease: "to_share" (default) or "half".
        fabric_threshold: Threshold of the fabric's longest path, for `window_of = "fabric"`. Default 0s: unknown. The
            simulator then computes it if sources choose their paths; otherwise the window is that of "paths".
        host_delay: Delay that the hosts themselves cause, added to the margin. Default 0s, as in the simulator; on real
            hosts it is the value that the device is configured with.
        limit: Limit of a queue pair. Default "auto".
        margin: Place where the margin of the base delay is counted: "per_switch" (default) or "per_link".
        margin_packets: Margin, in full packets at each switch or link. Default 5 (paper: 5 per switch; code: 1 per
            link).
        variant: Variant of the algorithm: "repaired" (default), "published", "published_unbounded" or "code_2025".
            Determines the rules that the other fields leave open. The named schemes set the other fields to match.
        window_of: Threshold by which the window is computed, which is two of it: "paths" (default) or "fabric".
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
    """Weave: reuse of paths whose packets returned in time, and a window that follows the low round-trip times.

    Args:
        choice: Choice of paths. "came_back_well" (default): a path whose packets returned in time, marked or not, else
            a random one, with one window for all paths. It fits fabrics with many similar paths. "window_each": the
            least full path, where each of the first 1,024 paths has a window of its own. It fits few paths of unequal
            rates. Real hosts (`pathweave perf`, the lab, the libfabric provider) always use "window_each"; set it to
            simulate them.
        max_bdp: Largest window, in bandwidth-delay products. The first window is two thirds of it. At 93 % load four
            hops queue packets by chance alone, and the window must cover these queues. Default 1.5.
        target: Queueing delay at which the largest window stays as it is, in round-trip times of the idle network. The
            time of two packets at line rate is added. A smaller window has a higher target. A lower target costs
            throughput, a higher one latency. Default: 3 if the application waits for all messages of a step, as in
            collectives and training; 0.05 if it waits for each message by itself.
    """

    kind: ClassVar[str | None] = "weave"
    choice: PathChoice | None = None
    max_bdp: float | None = None
    target: float | None = None


@dataclass(kw_only=True, repr=False)
class BytesQuantum(Table):
    """Bytes on the wire.

    Args:
        bytes: a size with its unit, such as "8MB" or "4KiB"
    """

    bytes: Size | None = None


@dataclass(kw_only=True, repr=False)
class GoBackNRecovery(Table):
    """Go-back-N: the receiver drops packets out of order and sends a NACK per gap; the sender goes back to the gap."""

    kind: ClassVar[str | None] = "go_back_n"


@dataclass(kw_only=True, repr=False)
class GoBackNRepeatedRecovery(Table):
    """Go-back-N with repeated NACKs. If a packet arrives ahead of the same gap `repeat` or more after the last NACK,
    the receiver sends another NACK, and the sender goes back again (conweave-ns3: 4 us).

    Args:
        repeat: Shortest time between two NACKs of a gap.
    """

    kind: ClassVar[str | None] = "go_back_n_repeated"
    repeat: Time | None = None


@dataclass(kw_only=True, repr=False)
class SelectiveRepeatRecovery(Table):
    """Selective repeat: the receiver places packets in any order; the sender retransmits missing ones.

    Args:
        reorder_packets: Reordering threshold in packets: a packet counts as lost once one sent this many packets later
            is acknowledged. 0 means that only the timer detects losses, which is right for lossless fabrics with
            spraying.
        sender_window_packets: Packets beyond the first gap that the sender sends, at least `window_packets`; the
            receiver drops the excess (UDMP, section III-D). Absent: `window_packets`.
        window_packets: Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed.
            Absent: 4,096, or the number that fills two bandwidth-delay products of the path if that is more.
    """

    kind: ClassVar[str | None] = "selective_repeat"
    reorder_packets: int | None = None
    sender_window_packets: int | None = None
    window_packets: int | None = None


@dataclass(kw_only=True, repr=False)
class TimedRecovery(Table):
    """Selective repeat with loss detection by time, learned from round-trip times (in the spirit of RACK and its tail
    loss probe, RFC 8985). A packet is late if a packet that left after it has arrived, and if it left longer ago than
    any recent packet took; that time is the patience. A late packet is lost. If switches pause or trim, it is lost only
    if a probe that followed it on its path returns first, or after twice the patience (weave: 1.25 times). If nothing
    arrives any more, probes follow the oldest packet after the patience, after twice the patience, and so on. A timeout
    occurs only if nothing arrives for the configured retransmission timeout, and for three patiences; until a packet
    has returned, the patience is that timeout. A message fails after the sum of the configured timeouts.

    Args:
        reorder_packets: Reordering threshold in packets: a packet also counts as lost once one sent this many packets
            later is acknowledged. 0 (default) disables the threshold.
        window_packets: Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed.
            Absent: 4,096, or the number that fills two bandwidth-delay products of the path if that is more.
    """

    kind: ClassVar[str | None] = "timed"
    reorder_packets: int | None = None
    window_packets: int | None = None


@dataclass(kw_only=True, repr=False)
class TimeoutsRecovery(Table):
    """Selective repeat without a reordering threshold, with the timer of MRC's NICs instead of the configured one:
    1.024 us times a power of two. Except for trimmed packets, only this timer detects losses.

    Args:
        alike: Number of timeouts in a row with the same duration, 1 to 7; the following ones double.
        exponent: Exponent of the power of two, 0 to 24. Absent: the smallest one that gives at least eight idle round
            trips where switches trim, and at least `network.retransmission.timeout` elsewhere, where packets wait in
            deep queues.
        retries: Number of timeouts in a row without progress after which a message fails, 1 to 25; 25 means never.
        window_packets: Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed. MRC
            has multiples of 128. Absent: 1,024, or the multiple of 128 that fills two bandwidth-delay products of the
            path if that is more.
    """

    kind: ClassVar[str | None] = "timeouts"
    alike: int | None = None
    exponent: int | None = None
    retries: int | None = None
    window_packets: int | None = None


@dataclass(kw_only=True, repr=False)
class SleekRecovery(Table):
    """SLEEK, Ultra Ethernet's recovery without trimming, for congestion controls with a window. A gap counts as loss
    once more packets ahead of it are acknowledged than 1.5 windows hold. All packets that are missing within a window
    from the gap on are then retransmitted, each once, regardless of the window. If no acknowledgement arrives, a probe
    follows the data. If the probe met no queue and the data has not arrived, the data is lost. The configured
    retransmission timer handles the remaining losses.

    Args:
        probe_again_rtts: Time from one probe to the next, in base round-trip times. Default 5.
        probe_rtts: Time from an acknowledgement to the probe while new data waits, in base round-trip times. Default 3.
            If no new data waits, the time is one base round-trip time plus the delay that the congestion control aims
            at.
        reorder_packets: Smallest number of packets ahead of a gap that proves a loss. Default 5.
        reorder_windows: Packets ahead of a gap that prove a loss, in windows; the product is at most the largest
            window. Default 1.5.
        window_packets: Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed.
            Absent: 4,096, or the number that fills two bandwidth-delay products of the path if that is more.
    """

    kind: ClassVar[str | None] = "sleek"
    probe_again_rtts: float | None = None
    probe_rtts: float | None = None
    reorder_packets: int | None = None
    reorder_windows: float | None = None
    window_packets: int | None = None


@dataclass(kw_only=True, repr=False)
class PathOrderRecovery(Table):
    """Selective repeat with loss detection by the order of packets on each path, which the path keeps in both
    directions. Once a packet is acknowledged, earlier packets of its path that are not acknowledged are lost. Requires
    an acknowledgement for every packet. The path's timer detects the loss of the last packet on a path (LAPS, algorithm
    3).

    Args:
        rto: Rule for the timeout of a path.
        rto_min: Shortest timeout of a path: 8 ms where PFC may hold packets up, 100 us where it does not.
        rto_slack: Time added to the timeout: that of 16 packets on the slowest link.
        scope: Scope of the order on a path.
        window_packets: Packets beyond the first gap that the receiver tracks; further ones are dropped and NACKed.
            Absent: 4,096, or the number that fills two bandwidth-delay products of the path if that is more.
    """

    kind: ClassVar[str | None] = "path_order"
    rto: PathRto | None = None
    rto_min: Time | None = None
    rto_slack: Time | None = None
    scope: RingScope | None = None
    window_packets: int | None = None


@dataclass(kw_only=True, repr=False)
class Recycled(Table):
    """Parameters of [`Recycled`]. Defaults are those of uet-htsim.

    Args:
        explore_after: Number of packets that take any path after that time, which also empties the ring. Default 16.
        explore_first: Number of packets that take any path at the start. Default 0 (the paper: a bandwidth-delay
            product).
        freeze: Time after a timeout during which only paths that worked before are taken. Default 10 ms (the paper: 100
            us).
        ring: Number of paths stored. Default 8.
    """

    explore_after: int | None = None
    explore_first: int | None = None
    freeze: Time | None = None
    ring: int | None = None


@dataclass(kw_only=True, repr=False)
class SilentReordering(Table):
    """No reports: the sender detects losses by itself."""

    kind: ClassVar[str | None] = "silent"


@dataclass(kw_only=True, repr=False)
class ReportedReordering(Table):
    """The receiver reports the missing packets before the gap as lost, unless a notice of the sender explains the gap.
    With selective repeat.

    Args:
        clean_notice: Effect of an unmarked notice, besides requesting copies. Default "shield".
        high: Data held ahead of a gap above which the receiver refuses notices. Default 128 KB, about two
            bandwidth-delay products of 400 Gb/s and 1.3 us. The paper gives no value.
        low: Data held ahead of a gap below which the receiver accepts notices again. Default 64 KB.
        repeat: Shortest time after which a packet that is still missing is reported again. Default 4 us (ConWeave
            simulator, NACK interval).
        wait: theta: time after which a packet that a notice announced as late is lost. Default 100 us, a little above
            the time that a queue at ECN's upper threshold takes to drain (3,200 KB at 400 Gb/s: 64 us). The paper gives
            no value.
    """

    kind: ClassVar[str | None] = "reported"
    clean_notice: CleanNotice | None = None
    high: Size | None = None
    low: Size | None = None
    repeat: Time | None = None
    wait: Time | None = None


@dataclass(kw_only=True, repr=False)
class Retransmission(Table):
    """Retransmission timer. It runs from the last progress of a queue pair, or from the departure of its oldest packet
    in flight if that is later.

    Args:
        backoff: Factor by which the time grows with each successive timeout, 1 to 16. Default 2.
        max_timeout: Longest time between timeouts. Default 64 ms.
        retry_limit: Number of successive timeouts without progress after which a message fails. Default 7, the highest
            value of a RoCE NIC.
        timeout: Time to the first timeout. Default 4 ms (ConWeave's set-ups): longer than a full 32 MB buffer takes to
            drain at 100 Gb/s, so that a late packet in a lossless fabric is not taken for lost. A fabric that drops
            packets needs less. In a scenario without the field, twice the longest idle round trip if that is longer, in
            whole milliseconds.
    """

    backoff: int | None = None
    max_timeout: Time | None = None
    retry_limit: int | None = None
    timeout: Time | None = None


@dataclass(kw_only=True, repr=False)
class EcmpRouting(Table):
    """Switches choose among shortest routes by a hash of header fields. A path is a value that the source sets in these
    fields (ECMP).
    """

    kind: ClassVar[str | None] = "ecmp"


@dataclass(kw_only=True, repr=False)
class SourceRouting(Table):
    """The source chooses among explicit paths and so determines every hop. Acknowledgements return over the same links.
    A path with a link that is down loses its packets, and is reported as down to the schemes after
    `switch.reroute_after`.

    Args:
        paths: Paths of each pair of hosts. Default: the paths that the topology provides for sources.
    """

    kind: ClassVar[str | None] = "source"
    paths: PathSet | None = None


@dataclass(kw_only=True, repr=False)
class SenderSwitchRouting(Table):
    """The sender's switch chooses among explicit paths, according to `switch.forwarding`: "letflow", "conga" or
    "conweave". The other switches follow its choice. Packets that these methods do not balance take a shortest path,
    selected by a hash. Paths with a link that is down are excluded after `switch.reroute_after`.

    Args:
        paths: Paths of each pair of hosts. Default: the paths that the topology provides for sources.
    """

    kind: ClassVar[str | None] = "sender-switch"
    paths: PathSet | None = None


@dataclass(kw_only=True, repr=False)
class NextHopsRouting(Table):
    """Each switch chooses among next hops, as with "ecmp", but from those that the explicit paths of the packet's two
    hosts take there, detours included. A next hop counts once even if several paths take it. `switch.forwarding` may be
    "ecmp", "rps" or "letflow". The study of LAPS routes ECMP, LetFlow and PLB in this way. Paths with a link that is
    down are excluded after `switch.reroute_after`.

    Args:
        paths: Paths of each pair of hosts. Default: the paths that the topology provides for sources.
    """

    kind: ClassVar[str | None] = "next-hops"
    paths: PathSet | None = None


@dataclass(kw_only=True, repr=False)
class Run(Table):
    """End, fidelity and execution of the run. The run ends when every foreground message is delivered and acknowledged
    or has failed, or earlier at one of the limits below.

    Args:
        calibrate: Check of a flow simulation against packets of its beginning. "auto" (default) measures a run that
            shows signs of being outside of the model, for some tenths of a second, and reports whether it is. "prefix"
            measures every run for some seconds: one number is fitted on half of the messages, and the label states the
            error on the others. "off" measures none.
        fidelity: Granularity of the simulation: "packet" (default) simulates every packet. "flow" simulates messages as
            fluids that share links, in a fraction of the time; docs/flow-fidelity.md states its error.
        fold: Folding of equivalent ranks in a flow simulation of a collective or training job ("collective", "simai",
            "transformer"). Ranks that the network and the job treat alike are simulated once. "auto" (default) folds
            jobs of more than 4 million messages and computations. "always" folds every job and is an error where no
            ranks are alike; "never" folds none. Needs a single workload without stragglers or faults, and a scheme that
            spreads its packets.
        max_events: Number of simulator events after which the run ends. The run completes the window (2us at most) in
            which it reaches the number. At least 1. Default: no limit.
        partition: File that assigns each node to a part of the run, for threads and ranks. Each line has the name of a
            node and the number of its part, from 0. A host that is not listed belongs to the part of its switch. Has no
            influence on results. Default: by the topology.
        threads: Number of parallel threads, 1 to 1024. Has no influence on results. Default: as many as the command
            sets, or as there are cores and enough hosts for, with at least 64 hosts a thread.
        until: Simulated time at which the run ends, even if work is left. Above 0. Default: no limit.
        verify: Verification that every byte of every message is delivered exactly once. A violation stops the run with
            an internal error. Costs time and memory. Default false.
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
class SwitchScaleUp(Table):
    """Switches join all GPUs (NVSwitch). Only the two directions of each GPU limit. `rate` is that of all links of a
    GPU together.

    Args:
        rate: Rate of all links of a GPU together in one direction.
        chips: Number of chips, among which the links of each GPU are divided evenly. A fault of one of k takes 1/k of
            the rate. Default 1.
        delay: Latency of a message in addition to the time of its bytes. Default 250 ns.
        efficiency: Usable part of the rate, above 0 to 1: payload that a program can move at most. Default 1.
        packets: Simulates messages as packets over these links, which are links of the network, with the scheme of the
            workload: for scale-up Ethernet. Default false: messages are fluid.
    """

    kind: ClassVar[str | None] = "switch"
    rate: Rate
    chips: int | None = None
    delay: Time | None = None
    efficiency: float | None = None
    packets: bool | None = None


@dataclass(kw_only=True, repr=False)
class FullMeshScaleUp(Table):
    """Each pair of GPUs has a link (MI300X).

    Args:
        rate: Rate of a link in one direction.
        delay: Latency of a message in addition to the time of its bytes. Default 250 ns.
        efficiency: Usable part of the rate, above 0 to 1: payload that a program can move at most. Default 1.
        packets: Simulates messages as packets over these links, which are links of the network, with the scheme of the
            workload: for scale-up Ethernet. Default false: messages are fluid.
    """

    kind: ClassVar[str | None] = "full-mesh"
    rate: Rate
    delay: Time | None = None
    efficiency: float | None = None
    packets: bool | None = None


@dataclass(kw_only=True, repr=False)
class HybridCubeMeshScaleUp(Table):
    """Eight GPUs with six links each, as in DGX-1 with V100: two quads, of which each GPU has a partner in the other.

    Args:
        rate: Rate of a link in one direction.
        delay: Latency of a message in addition to the time of its bytes. Default 250 ns.
        efficiency: Usable part of the rate, above 0 to 1: payload that a program can move at most. Default 1.
        packets: Simulates messages as packets over these links, which are links of the network, with the scheme of the
            workload: for scale-up Ethernet. Default false: messages are fluid.
    """

    kind: ClassVar[str | None] = "hybrid-cube-mesh"
    rate: Rate
    delay: Time | None = None
    efficiency: float | None = None
    packets: bool | None = None


@dataclass(kw_only=True, repr=False)
class RingScaleUp(Table):
    """Each GPU has a link to the next and to the previous one.

    Args:
        rate: Rate of a link in one direction.
        delay: Latency of a message in addition to the time of its bytes. Default 250 ns.
        efficiency: Usable part of the rate, above 0 to 1: payload that a program can move at most. Default 1.
        packets: Simulates messages as packets over these links, which are links of the network, with the scheme of the
            workload: for scale-up Ethernet. Default false: messages are fluid.
    """

    kind: ClassVar[str | None] = "ring"
    rate: Rate
    delay: Time | None = None
    efficiency: float | None = None
    packets: bool | None = None


@dataclass(kw_only=True, repr=False)
class TorusScaleUp(Table):
    """Torus: links to both neighbours in each dimension.

    Args:
        dims: GPUs in each dimension. The product is the number of GPUs of the domain. The first dimension varies
            fastest.
        rate: Rate of a link in one direction.
        delay: Latency of a message in addition to the time of its bytes. Default 250 ns.
        efficiency: Usable part of the rate, above 0 to 1: payload that a program can move at most. Default 1.
        packets: Simulates messages as packets over these links, which are links of the network, with the scheme of the
            workload: for scale-up Ethernet. Default false: messages are fluid.
    """

    kind: ClassVar[str | None] = "torus"
    dims: list[int]
    rate: Rate
    delay: Time | None = None
    efficiency: float | None = None
    packets: bool | None = None


@dataclass(kw_only=True, repr=False)
class ListScaleUp(Table):
    """Links as listed.

    Args:
        links: Links with both directions.
        delay: Latency of a message in addition to the time of its bytes. Default 250 ns.
        efficiency: Usable part of the rates, above 0 to 1: payload that a program can move at most. Default 1.
        packets: Simulates messages as packets over these links, which are links of the network, with the scheme of the
            workload: for scale-up Ethernet. Default false: messages are fluid.
    """

    kind: ClassVar[str | None] = "list"
    links: list[ListedLink]
    delay: Time | None = None
    efficiency: float | None = None
    packets: bool | None = None


@dataclass(kw_only=True, repr=False)
class NoneScaleUp(Table):
    """No network, in place of that of the server's `preset`: all traffic takes the NICs."""

    kind: ClassVar[str | None] = "none"


@dataclass(kw_only=True, repr=False)
class Server(Table):
    """Server with GPUs and NICs. Fields that are not given come from `preset`, or have the defaults below.

    Args:
        domain: Number of GPUs that one scale-up network joins: a multiple of `gpus` if it spans servers. Default:
            `gpus`.
        gpus: Number of GPUs. Each is a host. Default 8.
        nic_of_gpu: NIC of each GPU, if GPUs share NICs. Default: GPU g has NIC g * nics / gpus.
        nic_ports: Number of ports of a NIC. Default 1.
        nics: Number of NICs: a multiple or a divisor of `gpus`, unless `nic_of_gpu` is given. Default: `gpus`.
        pcie_delay: Latency between a GPU and its NIC, where `pcie_rate` matters. Default 300 ns.
        pcie_rate: Rate between a GPU and its NIC in each direction. It matters if it is below the rate of the NIC's
            ports, or if GPUs share a NIC. Default: no limit, or for shared NICs the rate of the NIC's ports.
        port_rate: Rate of a port. Default: the rate of the host links of `scale_out`.
        preset: Name of a server model, such as "dgx-h100", whose settings apply where none are given here.
        scale_up: Network that joins the GPUs. Default: none, so that all traffic takes the NICs.
    """

    domain: int | None = None
    gpus: int | None = None
    nic_of_gpu: list[int] | None = None
    nic_ports: int | None = None
    nics: int | None = None
    pcie_delay: Time | None = None
    pcie_rate: Rate | None = None
    port_rate: Rate | None = None
    preset: str | None = None
    scale_up: ScaleUp | None = None


@dataclass(kw_only=True, repr=False)
class ConnectionService(Table):
    """Reliable connection (RC): a queue pair at each end for each pair of processes."""

    kind: ClassVar[str | None] = "connection"


@dataclass(kw_only=True, repr=False)
class SharedReceiveService(Table):
    """Extended reliable connection (XRC, IBTA annex A14): one initiator per process and remote node. The processes of a
    node share receive queues.

    Args:
        node_processes: Processes of a node, 1 to 32768. Shared receive queues do not cross virtual machines. Absent:
            all processes of the host.
    """

    kind: ClassVar[str | None] = "shared_receive"
    node_processes: int | None = None


@dataclass(kw_only=True, repr=False)
class EndToEndService(Table):
    """Reliable datagram with end-to-end contexts (IBTA): one queue pair per process, one context per remote host, and
    one message at a time on each context.
    """

    kind: ClassVar[str | None] = "end_to_end"


@dataclass(kw_only=True, repr=False)
class DatagramService(Table):
    """Datagrams made reliable in software (ERD): one queue pair per process for all its peers.

    Args:
        announce: Time at which the sender announces the length of a message. "first_packet" (default): when its first
            packet leaves. "post": when the message is posted, so that receivers request packets that still wait at the
            sender.
        delivery: Order in which messages of one source are delivered. "unordered" (default): as they complete.
            "ordered": as they were posted.
        eeth: Place of ERD's header of 9 bytes. "inside_mtu" (default): it reduces the payload, to 4,087 bytes at an MTU
            of 4,096. "outside_mtu": it does not.
        repair: Rule by which the receiver requests retransmissions. "overtaken" (default): packets that later packets
            have overtaken on every path, and the last packets sent once the flow is silent. "two_scans": packets that
            two scans a period apart found missing. "literal": packets that one scan found missing, as the paper prints
            it, late packets included. "never": none (raw datagrams).
        retries: Priority of retransmissions over other packets. "first" (default, the paper): before all others.
            "half": alternately if both wait. "last": after all others.
        retry_limit: Number of requests in a row for the same packet after which its message fails, 1 to 65535. Default
            64; the paper has no limit.
        rtt: Round-trip time that the period is measured in. "measured" (default): the current time from the request for
            a packet to its arrival, at least the configured one. "configured": that of the idle network.
        scan_rtts: Period of the scan in round-trip times, 1 to 100. Default 2.5; the paper has 2 to 3, and at least 1.
        slows: Scope of a notification, with congestion control "dcqcn". "destination" (default): the destination that
            sent it. "queue_pair": all destinations, which share a rate.
        window_packets: Packets beyond the first missing one that the receiver tracks for each source, 64 to 1048576;
            further ones are dropped. Default 4096: 1.3 ms of full packets at 100 Gb/s.
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
    slows: NotificationScope | None = None
    window_packets: int | None = None


@dataclass(kw_only=True, repr=False)
class SideChannel(Table):
    """The reliable channel between each pair of hosts, which carries the requests and announcements of datagram queue
    pairs. It stands for TCP connections.

    Args:
        rate: Rate of each connection beside the fabric, above 0. Default 1 Gbit/s (ours).
        stack: Time in the network stack of each end, in addition to the way. Default 5 us (ours: typical of a kernel's
            TCP).
        via: Way of the channel's packets. "beside" (default): they do not cross the fabric, and take the delay of the
            idle path. "fabric": they cross it as those of a connection under scheme "dctcp", so that they can queue and
            be lost.
    """

    rate: Rate | None = None
    stack: Time | None = None
    via: SideRoute | None = None


@dataclass(kw_only=True, repr=False)
class Slow(Table):
    """Hosts that compute slower or faster than the others.

    Args:
        factor: Factor on the durations of their computations, above 0 and at most 1000: 2 for a GPU at half its clock.
        hosts: Hosts: a list of numbers in the workload, names and patterns, or a pattern such as "srv3.*".
    """

    factor: float
    hosts: HostList


@dataclass(kw_only=True, repr=False)
class Stragglers(Table):
    """Deviation of real durations of computations from the nominal ones of the workload: slow hosts, random variation,
    and measured factors. All factors are multiplied.

    Args:
        jitter: Random variation of computations. Each computation has its own draw from the stream of its host.
            Default: none.
        slow: Hosts that compute slower or faster than the others. Default: none.
        trace: File of measured factors, with one "host,factor" per line, relative to the scenario. A host with several
            lines uses one factor for each of its computations in turn, cyclically. A host without a line has factor 1.
            Lines that begin with # are skipped. Default: none.
    """

    jitter: Jitter | None = None
    slow: list[Slow] | None = None
    trace: str | None = None


@dataclass(kw_only=True, repr=False)
class Swift(Table):
    """Parameters of [`Swift`].

    Args:
        decrease: beta: decrease per relative excess of the delay over the target. Default 0.8 (SIGCOMM 2020).
        hop_scaling: Computes the target from a base and a term for each hop, instead of the idle round-trip time and
            `queue_target`. Absent: not used. Also not used if the number of hops is unknown, as on real hosts.
        increase: ai: packets added per round trip. Default 1 (SIGCOMM 2020).
        increase_over: Round trip in which the window grows by `increase`, if delays are measured over a part of the
            path only. Default "path".
        max_bdp: Largest window, in bandwidth-delay products. Default 2: with one, the line idles where acknowledgements
            wait behind packets. The flow starts with one bandwidth-delay product.
        max_decrease: max_mdf: largest decrease at once, as a fraction of the window. Default 0.5 (SIGCOMM 2020).
        min_packets: Smallest window, in packets. Default 0.001 (SIGCOMM 2020).
        min_rate: Rate that the smallest window supports over the idle path. Absent: a thousandth of the line rate. Over
            a WAN of a millisecond `min_packets` is a packet per second, from which no window recovers. 0bps: no such
            bound.
        queue_target: Queueing delay allowed to a large window. With spraying it must cover the spread between paths, or
            every round trip contains a packet above the target. Absent: the time of 32 full packets on a port of the
            host, the scale of random queues at any rate: 10.8 us with packets of 4,096 B at 100 Gb/s.
        scaling_max_packets: fs_max_cwnd: window, in packets, from which flow scaling adds nothing. Default 100 (SIGCOMM
            2020).
        scaling_min_packets: fs_min_cwnd: window, in packets, at and below which flow scaling adds its full range.
            Default 0.1 (SIGCOMM 2020).
        scaling_range: fs_range: largest addition of flow scaling to the target. Absent: four times the queueing delay
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
    """Settings of all switches of a fabric.

    Args:
        acks: Class in which acknowledgements and other control packets are queued. Default "control".
        buffer: Packet memory that all ports of a switch share, 64 KB to 4.29 GB. Default 32 MB (set-ups of UDMP, DLBF
            and HPCC).
        ecn: Congestion marking of the data classes.
        egress_alpha: Share of the free buffer that one lossy egress queue may fill before packets are dropped. Above 0,
            at most 1024. Default 1.0 (dynamic threshold of Choudhury and Hahne, 1998). Switches that trim use
            `trim.queue` instead.
        external: External switches, which join data centres: their buffer, and their functions beyond forwarding.
        for_: Other settings for some switches: `[[switch.for]]`. Of several tables for a switch, the last one that sets
            a field counts.
        forwarding: Load balancing in the switches.
        hash: Seeds of the hash that chooses among equal-cost next hops, in switches without other load balancing.
            Default "seeded".
        latency: Time that each packet takes behind its egress port, in addition to the delay of the link: the fixed
            latency of the switch. Default 0.
        pfc: Priority flow control for the data classes.
        reroute_after: Time from the failure or the return of a link or switch until all routes avoid it or use it
            again. Default 1 ms. Until then packets for a dead link are lost.
        trim: Trimming of data packets that do not fit in the queue of their port.
        weights: Weights of the data classes, one entry a class, each 1 to 1000. Data classes are counted from 1, and
            class i gets `weights[i - 1]` shares of the rate that strict-priority control traffic leaves. Default `[1]`,
            one class. At most 7 classes.
    """

    acks: AckClass | None = None
    buffer: Size | None = None
    ecn: Ecn | None = None
    egress_alpha: float | None = None
    external: External | None = None
    for_: list[SwitchFor] | None = None
    forwarding: ForwardingConfig | None = None
    hash: EcmpHash | None = None
    latency: Time | None = None
    pfc: Pfc | None = None
    reroute_after: Time | None = None
    trim: Trim | None = None
    weights: list[int] | None = None


@dataclass(kw_only=True, repr=False)
class SwitchFor(Table):
    """Settings of the switches that a table selects. Absent fields are those of earlier tables for the switch, or of
    all switches. At least one of `match`, `tier` and `group` is given; a switch is selected if all that are given
    apply.

    Args:
        asic: Chip of the switches, which sets `buffer`. A `buffer` in the same table counts instead.
        buffer: Replaces `switch.buffer`, and at external switches `switch.external.buffer`.
        ecn: Replaces fields of `switch.ecn`.
        egress_alpha: Replaces `switch.egress_alpha`.
        group: Pod or group of the switches.
        hash: Replaces `switch.hash`.
        latency: Replaces `switch.latency`.
        match: Names of the switches: "leaf0", or a pattern in which `*` stands for any characters, `?` for one, and
            `[0-7]` for a number: "p*.leaf*".
        pfc: Replaces fields of `switch.pfc`.
        tier: Tier of the switches: their distance from the hosts, 0 for ToRs and leaves.
        trim: Replaces fields of `switch.trim`.
    """

    asic: Asic | None = None
    buffer: Size | None = None
    ecn: EcnChange | None = None
    egress_alpha: float | None = None
    group: int | None = None
    hash: EcmpHash | None = None
    latency: Time | None = None
    match: str | None = None
    pfc: PfcChange | None = None
    tier: int | None = None
    trim: TrimChange | None = None


@dataclass(kw_only=True, repr=False)
class StarTopology(Table):
    """Hosts at one switch. Every path has two hops.

    Args:
        hosts: Number of hosts.
        delay: One-way propagation delay of every link. Default 1 us (UDMP, section V-A).
        error_rate: Probability that a link loses a packet, for every link, 0 to 1. Default 0.
        rate: Rate of every link. Default 100 Gb/s (UDMP, section V-A).
    """

    kind: ClassVar[str | None] = "star"
    hosts: int
    delay: Time | None = None
    error_rate: float | None = None
    rate: Rate | None = None


@dataclass(kw_only=True, repr=False)
class DumbbellTopology(Table):
    """Hosts at two switches, "left" and "right", that share a bottleneck. A path from one side to the other has three
    hops.

    Args:
        left_hosts: Number of hosts at the left switch, numbered from 0.
        bottleneck_delay: One-way propagation delay of the bottleneck. Default: `host_delay`.
        bottleneck_links: Number of parallel links of the bottleneck. Default 1.
        bottleneck_rate: Rate of each link of the bottleneck. Default: `host_rate`.
        error_rate: Probability that a link loses a packet, for every link, 0 to 1. Default 0.
        host_delay: One-way propagation delay of the links of hosts. Default 1 us (UDMP, section V-A).
        host_rate: Rate of the links of hosts. Default 100 Gb/s (UDMP, section V-A).
        right_hosts: Number of hosts at the right switch, numbered after the left ones. Default: `left_hosts`.
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
        hosts_per_leaf: Number of hosts at each leaf.
        leaves: Number of leaf switches.
        spines: Number of spine switches.
        error_rate: Probability that a link loses a packet, for every link, 0 to 1. Default 0.
        host_delay: One-way propagation delay between hosts and leaves. Default 1 us (UDMP, section V-A).
        host_rate: Rate of the links between hosts and leaves. Default 100 Gb/s (UDMP, section V-A).
        leaf_spine_links: Number of parallel links between each leaf and each spine. Default 1.
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
    """Three-tier fat tree. Specify `k`, or `pods`, `tors_per_pod`, `hosts_per_tor`, `aggs_per_pod` and `cores`.

    Args:
        agg_core_delay: One-way propagation delay between aggregation switches and cores. Default: `tor_agg_delay`.
        agg_core_links: Number of parallel links between each aggregation switch and each of its cores. Default 1.
        agg_core_rate: Rate of the links between aggregation switches and cores. Default: `tor_agg_rate`.
        aggs_per_pod: Number of aggregation switches in each pod.
        core_wiring: Core switches to which an aggregation switch connects. Default "planes".
        cores: Total number of core switches. With `core_wiring = "planes"` a multiple of `aggs_per_pod`.
        error_rate: Probability that a link loses a packet, for every link, 0 to 1. Default 0.
        host_delay: One-way propagation delay of the links between hosts and ToRs. Default 1 us (UDMP, section V-A).
        host_rate: Rate of the links between hosts and ToRs. Default 100 Gb/s (UDMP, section V-A).
        hosts_per_tor: Number of hosts at each ToR switch.
        k: Size of a k-ary fat tree (Al-Fares et al., SIGCOMM 2008, section 3): k pods with k/2 ToRs of k/2 hosts each
            and k/2 aggregation switches, and (k/2)^2 cores. Must be even. Excludes the five counts.
        oversubscription: Ratio of an aggregation switch's capacity towards its ToRs to that towards its cores, at least
            1, where 1 means no oversubscription. Sets `agg_core_rate` and therefore excludes it. Fewer `cores`
            oversubscribe by fewer paths instead.
        pods: Number of pods.
        tor_agg_delay: One-way propagation delay between ToRs and aggregation switches. Default: `host_delay`.
        tor_agg_links: Number of parallel links between each ToR and each aggregation switch of its pod. Default 1.
        tor_agg_rate: Rate of the links between ToRs and aggregation switches. Default: `host_rate`.
        tors_per_pod: Number of ToR switches in each pod.
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
    """Two or more data centres (sites) of any kind. Each external switch is linked to all top switches of its site. WAN
    links join the external switches of every pair of sites. Names of nodes in site i begin with "dc{i}.", such as
    "dc0.leaf3"; the external switches are "dc0.esw0" and so on. Hosts are numbered consecutively, site by site.

    Args:
        site: Topology inside each site, of any kind. Either one for all sites, or one for each.
        edge_delay: One-way propagation delay of the links between top switches and external switches. Default 1 us
            (Reflex, section II-C).
        edge_rate: Rate of each link between a top switch of the site and an external switch. Default 100 Gb/s (Reflex,
            section II-C).
        external_switches: Number of external switches of each site. The k-th of one site is joined to the k-th of every
            other. Default 1.
        sites: Number of sites, 2 to 64. Default: the number of entries in `site`.
        wan_delay: One-way propagation delay of the WAN links. Default 500 us (Reflex, section II-C).
        wan_links: Number of parallel WAN links between two external switches. Default 1.
        wan_pfc: Enables PFC between external switches across the WAN. Default false, because the headroom of such a
            link is twice its delay at its full rate, 200 MB with the defaults. Without PFC the buffers of external
            switches must absorb all bursts.
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
class ClusterTopology(Table):
    """Servers with GPUs and several NICs, attached to a scale-out network of any kind. Each GPU is a host: GPU g of
    server s, named "srv{s}.gpu{g}", has number s * gpus + g. GPUs of one server or rack exchange messages over their
    scale-up network (NVLink), all others over their NICs.

    Args:
        scale_out: Network between the servers. Its hosts are the attachment points of NIC ports. With `planes`, it is
            the network of one plane.
        servers: Number of servers.
        attach: Attachment of NIC ports to the hosts of `scale_out`. "rail": a leaf holds the NICs with one number, of
            `unit` servers. "server": all ports of a server follow each other, then the next server; with `unit`, the
            NICs of that many servers share leaves, one for each port of a NIC. A list: the point of each port, in the
            order of servers, NICs and ports. Default "rail".
        planes: Connects port q of every NIC to plane q, a copy of `scale_out` with the prefix "p{q}." in all names.
            Default false: all ports are attached to one network.
        server: GPUs, NICs and scale-up network of a server.
        unit: Number of servers of a scalable unit. Default: with `attach = "rail"`, all servers are one unit; with
            "server", there are no units.
    """

    kind: ClassVar[str | None] = "cluster"
    scale_out: Topology
    servers: int
    attach: Attach | None = None
    planes: bool | None = None
    server: Server | None = None
    unit: int | None = None


@dataclass(kw_only=True, repr=False)
class DragonflyTopology(Table):
    """Dragonfly (Kim et al., ISCA 2008). In a group every switch is linked to every other. Every two groups are linked
    by `links_between_groups` links, spread evenly over their switches. A path leads to the other group directly or over
    one more group, and inside a group directly or over one more switch.

    Args:
        groups: Number of groups, 2 or more.
        hosts_per_switch: Number of hosts at each switch.
        switches_per_group: Number of switches in each group.
        error_rate: Probability that a link loses a packet, for every link, 0 to 1. Default 0.
        global_delay: One-way propagation delay between groups. Default: `local_delay`.
        global_rate: Rate of the links between groups. Default: `local_rate`.
        host_delay: One-way propagation delay between hosts and switches. Default 1 us (LAPS, section IV).
        host_rate: Rate of the links between hosts and switches. Default 100 Gb/s (LAPS, section IV).
        links_between_groups: Number of links between every two groups. Default 1.
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
    """Rail-only network. The GPUs of a cluster share a scale-up switch (such as NVLink's), and the GPUs of equal index
    in all clusters share a rail switch. GPUs forward, so a GPU is modelled as a switch with one host behind it. A path
    to another cluster takes one of the rails. If the rail is not the GPU's own, the path has a hop over the scale-up
    switch at that end.

    Args:
        clusters: Number of clusters. The GPUs of a cluster share a scale-up switch.
        gpus_per_cluster: Number of GPUs in each cluster, which equals the number of rails.
        error_rate: Probability that a link loses a packet, for every link, 0 to 1. Default 0.
        gpu_queues: Marking (ECN) in the queues of GPUs. Default "unmarked": a GPU holds its own traffic back, as a NIC
            does.
        host_delay: One-way propagation delay between a host and its GPU's ports. Default 1 us (LAPS, section IV).
        host_rate: Rate between a host and its GPU's ports. Default: the sum of `rail_rate` and `scale_up_rate`, all
            that the GPU can send (as in the evaluation of LAPS).
        rail_delay: One-way propagation delay to rail switches. Default: `host_delay`.
        rail_rate: Rate of the links to rail switches. Default 100 Gb/s (LAPS, section IV).
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
    """Torus or mesh of one to three dimensions: switches on a grid, each linked to its neighbours. A path takes one
    dimension after the other, in any order of dimensions. In a torus it may go around a dimension in both directions;
    the shorter one comes first. Lossless traffic can deadlock around a ring with any routes, as there are no dateline
    channels; the PFC watch then reports the cycle. A mesh does not deadlock if all paths take its dimensions in one
    order (`max_paths` = 1).

    Args:
        size: Number of switches along each dimension, one to three numbers, such as [4, 4].
        ends: Links between the ends of each dimension: "joined" for a torus, "open" for a mesh. Default "joined".
        error_rate: Probability that a link loses a packet, for every link, 0 to 1. Default 0.
        host_delay: One-way propagation delay between hosts and switches. Default 1 us (UDMP, section V-A).
        host_rate: Rate of the links between hosts and switches. Default 100 Gb/s (UDMP, section V-A).
        hosts_per_switch: Number of hosts at each switch. Default 1.
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
    """Full mesh of one to three dimensions, as UB-Mesh builds its racks (Liao et al., Hot Chips 2025). Every two
    switches that differ in exactly one coordinate are linked. A path takes one hop in each dimension that differs, in
    any order of dimensions, or makes one detour over another switch in one of these dimensions.

    Args:
        size: Number of switches along each dimension, one to three numbers, such as [8, 8].
        error_rate: Probability that a link loses a packet, for every link, 0 to 1. Default 0.
        host_delay: One-way propagation delay between hosts and switches. Default 1 us (UDMP, section V-A).
        host_rate: Rate of the links between hosts and switches. Default 100 Gb/s (UDMP, section V-A).
        hosts_per_switch: Number of hosts at each switch. Default 1.
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
    drawn at random. The same `wiring_seed` gives the same network. For explicit paths use `kind = "k-shortest"`.

    Args:
        hosts_per_switch: Number of hosts at each switch.
        links_per_switch: Number of links of each switch to other switches, 3 to 128 and below `switches`. If `switches`
            times `links_per_switch` is odd, one switch has one link less.
        switches: Number of switches.
        error_rate: Probability that a link loses a packet, for every link, 0 to 1. Default 0.
        host_delay: One-way propagation delay between hosts and switches. Default 1 us (UDMP, section V-A).
        host_rate: Rate of the links between hosts and switches. Default 100 Gb/s (UDMP, section V-A).
        switch_delay: One-way propagation delay between switches. Default: `host_delay`.
        switch_rate: Rate of the links between switches. Default: `host_rate`.
        wiring_seed: Seed of the wiring, independent of the seed of the run. Default 1.
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
class BcubeTopology(Table):
    """BCube (Guo et al., SIGCOMM 2009): each server has a port and a digit for each level, and servers that differ in
    one digit share a switch of that level. Servers forward packets: a host is at a switch of its own, which marks no
    packets. A path corrects one digit after the other, in any order, or goes over a neighbour at another level.
    Lossless traffic can deadlock, because a server forwards between all its ports; the PFC watch then reports the
    cycle.

    Args:
        switch_ports: Number of ports of a switch, the n of BCube(n, k). There are n servers for one level, n x n for
            two.
        error_rate: Probability that a link between a server and a switch loses a packet, 0 to 1. Default 0.
        host_delay: One-way delay between a host and its ports. Default 300 ns.
        host_rate: Rate between a host and its ports. Default: that of all its ports together.
        levels: Number of levels, 1 to 3: the ports of a server, the k + 1 of BCube(n, k). Default 2.
        port_delay: One-way propagation delay between servers and switches. Default 1 us (UDMP, section V-A).
        port_rate: Rate of the links between servers and switches. Default 100 Gb/s (UDMP, section V-A).
    """

    kind: ClassVar[str | None] = "bcube"
    switch_ports: int
    error_rate: float | None = None
    host_delay: Time | None = None
    host_rate: Rate | None = None
    levels: int | None = None
    port_delay: Time | None = None
    port_rate: Rate | None = None


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
    """A topology of SimAI: GPUs with NVSwitches and a network. A GPU is a host. Routes are shortest by number of links.
    Traffic between GPUs of a server therefore takes an NVSwitch. If the two GPUs also share a leaf, traffic takes both,
    unless one is more than four times as fast as the other.

    Args:
        path: The file, relative to the scenario file.
    """

    kind: ClassVar[str | None] = "simai"
    path: str


@dataclass(kw_only=True, repr=False)
class HtsimTopology(Table):
    """A `.topo` file of htsim: a folded Clos of two or three tiers. Half of a switch's `Switch_Latency_ns` is added to
    the link before it and half to the link behind it. Cores are numbered as in pathweave's fat tree. Queue sizes are
    not imported.

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
        agg_core_links: Number of parallel links between each aggregation switch and each of its cores. Default 1.
        agg_core_rate: Rate of the links between aggregation switches and cores. Default: `tor_agg_rate`.
        aggs_per_pod: Number of aggregation switches in each pod.
        attach: Attachment of NIC ports to the hosts of `scale_out`. "rail": a leaf holds the NICs with one number, of
            `unit` servers. "server": all ports of a server follow each other, then the next server; with `unit`, the
            NICs of that many servers share leaves, one for each port of a NIC. A list: the point of each port, in the
            order of servers, NICs and ports. Default "rail".
        bottleneck_delay: One-way propagation delay of the bottleneck. Default: `host_delay`.
        bottleneck_links: Number of parallel links of the bottleneck. Default 1.
        bottleneck_rate: Rate of each link of the bottleneck. Default: `host_rate`.
        clusters: Number of clusters. The GPUs of a cluster share a scale-up switch.
        core_wiring: Core switches to which an aggregation switch connects. Default "planes".
        cores: Total number of core switches. With `core_wiring = "planes"` a multiple of `aggs_per_pod`.
        delay: One-way propagation delay of every link. Default 1 us (UDMP, section V-A).
        edge_delay: One-way propagation delay of the links between top switches and external switches. Default 1 us
            (Reflex, section II-C).
        edge_rate: Rate of each link between a top switch of the site and an external switch. Default 100 Gb/s (Reflex,
            section II-C).
        ends: Links between the ends of each dimension: "joined" for a torus, "open" for a mesh. Default "joined".
        error_rate: Probability that a link between a server and a switch loses a packet, 0 to 1. Default 0.
        external_switches: Number of external switches of each site. The k-th of one site is joined to the k-th of every
            other. Default 1.
        global_delay: One-way propagation delay between groups. Default: `local_delay`.
        global_rate: Rate of the links between groups. Default: `local_rate`.
        gpu_queues: Marking (ECN) in the queues of GPUs. Default "unmarked": a GPU holds its own traffic back, as a NIC
            does.
        gpus_per_cluster: Number of GPUs in each cluster, which equals the number of rails.
        groups: Number of groups, 2 or more.
        host_delay: One-way delay between a host and its ports. Default 300 ns.
        host_rate: Rate between a host and its ports. Default: that of all its ports together.
        hosts: Number of hosts.
        hosts_per_leaf: Number of hosts at each leaf.
        hosts_per_switch: Number of hosts at each switch.
        hosts_per_tor: Number of hosts at each ToR switch.
        k: Size of a k-ary fat tree (Al-Fares et al., SIGCOMM 2008, section 3): k pods with k/2 ToRs of k/2 hosts each
            and k/2 aggregation switches, and (k/2)^2 cores. Must be even. Excludes the five counts.
        leaf_spine_links: Number of parallel links between each leaf and each spine. Default 1.
        leaves: Number of leaf switches.
        left_hosts: Number of hosts at the left switch, numbered from 0.
        levels: Number of levels, 1 to 3: the ports of a server, the k + 1 of BCube(n, k). Default 2.
        links_between_groups: Number of links between every two groups. Default 1.
        links_per_switch: Number of links of each switch to other switches, 3 to 128 and below `switches`. If `switches`
            times `links_per_switch` is odd, one switch has one link less.
        local_delay: One-way propagation delay inside a group. Default: `host_delay`.
        local_rate: Rate of the links inside a group. Default: `host_rate`.
        name: Name of the preset.
        oversubscription: Ratio of an aggregation switch's capacity towards its ToRs to that towards its cores, at least
            1, where 1 means no oversubscription. Sets `agg_core_rate` and therefore excludes it. Fewer `cores`
            oversubscribe by fewer paths instead.
        path: The file, relative to the scenario file.
        planes: Connects port q of every NIC to plane q, a copy of `scale_out` with the prefix "p{q}." in all names.
            Default false: all ports are attached to one network.
        pods: Number of pods.
        port_delay: One-way propagation delay between servers and switches. Default 1 us (UDMP, section V-A).
        port_rate: Rate of the links between servers and switches. Default 100 Gb/s (UDMP, section V-A).
        rail_delay: One-way propagation delay to rail switches. Default: `host_delay`.
        rail_rate: Rate of the links to rail switches. Default 100 Gb/s (LAPS, section IV).
        rate: Rate of every link. Default 100 Gb/s (UDMP, section V-A).
        right_hosts: Number of hosts at the right switch, numbered after the left ones. Default: `left_hosts`.
        scale_out: Network between the servers. Its hosts are the attachment points of NIC ports. With `planes`, it is
            the network of one plane.
        scale_up_delay: One-way propagation delay to scale-up switches. Default: `host_delay`.
        scale_up_rate: Rate of the links to scale-up switches. Default: `rail_rate`.
        server: GPUs, NICs and scale-up network of a server.
        servers: Number of servers.
        site: Topology inside each site, of any kind. Either one for all sites, or one for each.
        sites: Number of sites, 2 to 64. Default: the number of entries in `site`.
        size: Number of switches along each dimension, one to three numbers, such as [8, 8].
        spine_delay: One-way propagation delay between leaves and spines. Default: `host_delay`.
        spine_rate: Rate of the links between leaves and spines. Default: `host_rate`.
        spines: Number of spine switches.
        switch_delay: One-way propagation delay between switches. Default: `host_delay`.
        switch_ports: Number of ports of a switch, the n of BCube(n, k). There are n servers for one level, n x n for
            two.
        switch_rate: Rate of the links between switches. Default: `host_rate`.
        switches: Number of switches.
        switches_per_group: Number of switches in each group.
        tor_agg_delay: One-way propagation delay between ToRs and aggregation switches. Default: `host_delay`.
        tor_agg_links: Number of parallel links between each ToR and each aggregation switch of its pod. Default 1.
        tor_agg_rate: Rate of the links between ToRs and aggregation switches. Default: `host_rate`.
        tors_per_pod: Number of ToR switches in each pod.
        unit: Number of servers of a scalable unit. Default: with `attach = "rail"`, all servers are one unit; with
            "server", there are no units.
        wan_delay: One-way propagation delay of the WAN links. Default 500 us (Reflex, section II-C).
        wan_links: Number of parallel WAN links between two external switches. Default 1.
        wan_pfc: Enables PFC between external switches across the WAN. Default false, because the headroom of such a
            link is twice its delay at its full rate, 200 MB with the defaults. Without PFC the buffers of external
            switches must absorb all bursts.
        wan_rate: Rate of each WAN link. Default 1.6 Tb/s (Reflex, section II-C).
        wiring_seed: Seed of the wiring, independent of the seed of the run. Default 1.
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
    attach: Attach | None = None
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
    levels: int | None = None
    links_between_groups: int | None = None
    links_per_switch: int | None = None
    local_delay: Time | None = None
    local_rate: Rate | None = None
    name: str | None = None
    oversubscription: float | None = None
    path: str | None = None
    planes: bool | None = None
    pods: int | None = None
    port_delay: Time | None = None
    port_rate: Rate | None = None
    rail_delay: Time | None = None
    rail_rate: Rate | None = None
    rate: Rate | None = None
    right_hosts: int | None = None
    scale_out: Topology | None = None
    scale_up_delay: Time | None = None
    scale_up_rate: Rate | None = None
    server: Server | None = None
    servers: int | None = None
    site: list[Topology] | None = None
    sites: int | None = None
    size: list[int] | None = None
    spine_delay: Time | None = None
    spine_rate: Rate | None = None
    spines: int | None = None
    switch_delay: Time | None = None
    switch_ports: int | None = None
    switch_rate: Rate | None = None
    switches: int | None = None
    switches_per_group: int | None = None
    tor_agg_delay: Time | None = None
    tor_agg_links: int | None = None
    tor_agg_rate: Rate | None = None
    tors_per_pod: int | None = None
    unit: int | None = None
    wan_delay: Time | None = None
    wan_links: int | None = None
    wan_pfc: bool | None = None
    wan_rate: Rate | None = None
    wiring_seed: int | None = None


@dataclass(kw_only=True, repr=False)
class TrimChange(Table):
    """Changed fields of `switch.trim`.

    Args:
        arriving: Replaces `switch.trim.arriving`.
        enabled: Replaces `switch.trim.enabled`.
        header_queue: Replaces `switch.trim.header_queue`.
        queue: Replaces `switch.trim.queue`.
        reference_rate: Replaces `switch.trim.reference_rate`.
        size: Replaces `switch.trim.size`.
        thresholds: Replaces `switch.trim.thresholds`.
    """

    arriving: float | None = None
    enabled: bool | None = None
    header_queue: Size | None = None
    queue: Size | None = None
    reference_rate: Rate | None = None
    size: Size | None = None
    thresholds: Thresholds | None = None


@dataclass(kw_only=True, repr=False)
class Trim(Table):
    """Trimming in switches: treatment of data packets that do not fit in the queue of their port. Replaces the limit of
    `egress_alpha`. Cannot be combined with `pfc`.

    Args:
        arriving: Share of trims that apply to the arriving packet, 0 to 1. The others apply to the newest packet in the
            queue, and the arriving packet takes its place. Default 0.5 (uet-htsim).
        enabled: Enables trimming instead of dropping. Default false. Requires `pfc.enabled = false`.
        header_queue: Headers and control packets that a port may hold at `reference_rate`. Further ones are lost. At
            least `size`. Absent: twice `queue` (uet-htsim).
        queue: Data that a port may hold at `reference_rate`, including the packet in transmission. At least 1 KB.
            Default 178450 B: 43 packets of 4150 bytes, a bandwidth-delay product of 14 us at 100 Gb/s (uet-htsim).
        reference_rate: Port rate to which `queue` and `header_queue` refer, above 0. Default 100 Gb/s.
        size: Size of a trimmed packet on the link, 40 B to 512 B. Default 64 B (uet-htsim); SAI has 128 B.
        thresholds: Scaling of `queue` and `header_queue` at ports of other rates. Default "by-rate".
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
        bias: Bytes added to the queue of a detour's port in the comparison. Default 0 (the published comparison). A
            larger value keeps packets on the shortest path while queues are short.
    """

    bias: Size | None = None


@dataclass(kw_only=True, repr=False)
class Wcmp(Table):
    """Parameters of weighted next hops. Weights follow the rates of links and their failures, after
    `switch.reroute_after`.

    Args:
        most_entries: Number of table entries that a set of next hops may take in a switch, 1 to 4096. A set with more
            next hops takes one entry for each. More entries represent the ratio of the capacities more precisely.
            Default 64 (ours; the paper studies how few suffice).
    """

    most_entries: int | None = None


@dataclass(kw_only=True, repr=False)
class BdpWindow(Table):
    """A number of bandwidth-delay products (line rate times idle round-trip time)."""

    bdp: float | None = None


@dataclass(kw_only=True, repr=False)
class PacketsWindow(Table):
    """A number of full packets."""

    packets: int | None = None


@dataclass(kw_only=True, repr=False)
class WorkloadTable(Table):
    """Traffic that is reported together and carried by one scheme. Several workloads run at the same time.

    Args:
        between_sites: Scheme of messages to another data centre. They are reported as a separate group, "NAME between
            sites". Default: the workload's scheme, without a separate group.
        class_: Traffic class of the data packets: 1 to the number of `switch.weights`. Default 1.
        connections: Connections of the messages: "of-kind" (default) or "own". With "of-kind" most kinds have one
            connection for each pair of processes. With "own" each message has its own connection and begins at the rate
            of a new connection, as in ASTRA-sim with ns-3.
        group: Name of the workload in reports. Its random streams depend on the name. Workloads with the same name are
            reported together. Default: the kind.
        pool: Name of the entry in `[pools]` whose hosts the workload uses. It numbers these hosts from 0. Default: all
            hosts.
        role: Role of the workload: "foreground" (default) or "background". The run waits for the foreground, and its
            figures describe it. Background traffic competes with it, is cut off when the foreground is done, and is
            reported separately.
        scheme: Scheme of the messages, in the form of the scenario's `scheme`. Default: the scenario's `scheme`.
        start: Start of the workload, since the start of the run. Default 0s.
        stragglers: Variation of the computation times between hosts: slow hosts, jitter, measured factors. Default:
            none.
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
        flows: Number of flows, drawn by seed among those of the permutation. A host sends and receives one flow at
            most. Default: all flows, one from each host.
        pattern: Rule by which receivers are assigned. Default "random".
        repetitions: Number of messages that each host sends to its receiver (default 1). All of them are posted at the
            start, on one connection.
        shift: Distance between sender and receiver, in hosts; only with `pattern = "shift"`. Default: half the number
            of hosts.
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
        senders: Number of senders to each receiver (the N of N-to-1), drawn by seed among the other hosts.
        size: Size of each message, 1 B to 4 GiB.
        draw: Rule by which senders are drawn. Default "independent".
        interval: Time between the starts of consecutive events (default 1 ms).
        jitter: Largest extra delay of the start of a message, drawn from a uniform distribution from 0 (default 0).
        receiver_hosts: Receivers: a list of host numbers, names and patterns, or a pattern such as "srv*.gpu0".
            Replaces `receivers`, which draws them at random. Default: none.
        receivers: Number of receivers, drawn by seed (default 1).
        repetitions: Number of events (default 1). Each event has other senders.
    """

    kind: ClassVar[str | None] = "incast"
    senders: int
    size: Size
    draw: Draw | None = None
    interval: Time | None = None
    jitter: Time | None = None
    receiver_hosts: HostList | None = None
    receivers: int | None = None
    repetitions: int | None = None


@dataclass(kw_only=True, repr=False)
class AllToAllWorkload(WorkloadTable):
    """Every host of a group sends to every other.

    Args:
        size: Size of the message of each ordered pair of hosts or processes, 1 B to 4 GiB.
        compute: Duration of a computation at each host after each round, as part of the round's job (default 0).
        group_size: Number of hosts in a group, or a list of numbers, one for each group. Default: one group of all
            hosts.
        placement: Assignment of hosts to groups. Default "consecutive".
        processes: Number of processes in a group, 2 to 32768 for each host. Process p is on host p modulo the number of
            hosts of the group. Each process sends to every process on another host. Default: one process on each host.
        repetitions: Number of rounds, one after another (default 1). A host begins the next round when it has sent and
            received all messages of the previous one.
        stagger: Delay between the starts of consecutive steps: messages of step s start no earlier than (s - 1) times
            this value. Messages with the same start are posted in the order of their receivers. So without `window` and
            `stagger`, all hosts send to the first host first; with "1ps", messages are posted in the order of steps.
            Default: 0s.
        window: Largest number of messages that a host has outstanding: step s begins once the host's message of step s
            - `window` is acknowledged. Default: no limit.
    """

    kind: ClassVar[str | None] = "all-to-all"
    size: Size
    compute: Time | None = None
    group_size: GroupSize | None = None
    placement: Placement | None = None
    processes: int | None = None
    repetitions: int | None = None
    stagger: Time | None = None
    window: int | None = None


@dataclass(kw_only=True, repr=False)
class RingAllReduceWorkload(WorkloadTable):
    """Groups of hosts add up a vector around a ring, step by step.

    Args:
        size: Size of the vector that each host contributes; at least one byte per host of the group.
        compute: Duration of a computation at each host after each round, as part of the round's job (default 0).
        group_size: Number of hosts in a ring, or a list of numbers, one for each ring. Default: one ring of all hosts.
        placement: Assignment of hosts to rings. Default "consecutive".
        repetitions: Number of rounds, one after another (default 1). A host begins the next round when its part of the
            previous one has ended.
    """

    kind: ClassVar[str | None] = "ring-all-reduce"
    size: Size
    compute: Time | None = None
    group_size: GroupSize | None = None
    placement: Placement | None = None
    repetitions: int | None = None


@dataclass(kw_only=True, repr=False)
class CollectiveWorkload(WorkloadTable):
    """All-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, by several algorithms.

    Args:
        operation: Operation of the collective.
        size: Size as nccl-tests define it, see `operation`. At least one byte for each part into which the algorithm
            divides the vector.
        algorithm: Algorithm of the collective. Default: `direct` for an all-to-all, otherwise `ring`.
        chunk: Largest piece that double binary trees and chains send, bytes (default 512 KiB: NCCL's buffer of 4 MiB
            has 8 steps).
        compute: Duration of a computation at each host in each round, as part of the round's job (default 0).
        compute_when: Time of the computation within the round. Default "after".
        group_size: Number of hosts in a group, or a list of numbers, one for each group. Default: one group of all
            hosts.
        groups: Hosts of each group in the order of their ranks: a list of numbers, names and patterns, or a pattern
            such as "srv[0-3].gpu*". Replaces `group_size` and `placement`. Default: none.
        local_size: Number of consecutive ranks that form a server, for the hierarchical all-reduce (default 8, the GPUs
            of an HGX board).
        placement: Assignment of hosts to groups and ranks. Default "consecutive".
        repetitions: Number of rounds, one after another (default 1). A host begins the next round when its part of the
            previous one has ended.
    """

    kind: ClassVar[str | None] = "collective"
    operation: Operation
    size: Size
    algorithm: Algorithm | None = None
    chunk: Size | None = None
    compute: Time | None = None
    compute_when: ComputeWhen | None = None
    group_size: GroupSize | None = None
    groups: list[HostList] | None = None
    local_size: int | None = None
    placement: Placement | None = None
    repetitions: int | None = None


@dataclass(kw_only=True, repr=False)
class NcclWorkload(WorkloadTable):
    """Collectives as NCCL executes them on servers with GPUs: rings, trees, NVLS, PAT, protocols, PXN.

    Args:
        operation: Operation of the collective.
        size: Size as nccl-tests define it, see `operation`.
        algorithm: Algorithm. Default "auto".
        bandwidth: Part of the rate of links that NCCL's kernels and proxies keep busy, above 0 and at most 1.2.
            Messages have as many more bytes. Default: the value fitted to measurements of the GPU's generation.
        channels: Number of channels of rings, trees and PAT, 1 to 64. Default: as many as NCCL uses for the size.
        cpu: Processor of the servers, on which NCCL's latencies depend. Default: that of the usual servers of the GPU.
        gpu: Model of GPU. Default: that of the servers' model.
        group_size: Number of hosts in a group, or a list of numbers, one for each group. Default: one group of all
            hosts.
        groups: Hosts of each group in the order of their ranks: a list of numbers, names and patterns, or a pattern
            such as "srv[0-3].gpu*". Replaces `group_size` and `placement`. Default: none.
        latency: Factor of the latencies of the protocol Simple. Default: the value fitted to measurements of the GPU's
            generation. `pathweave fit` finds it from measurements of a real system.
        most_messages: Number of messages of a collective above which loops are merged, and channels that share a NIC
            (default 8192, at most 1048576): with it simulations are held to measurements. Fewer messages run faster.
            Merged loops are coarser pieces, which fill pipelines more slowly, and need fewer slots: NVLSTree takes up
            to 28 % less time with them.
        placement: Assignment of hosts to groups and ranks. Default "consecutive".
        protocol: Protocol. Default "auto".
        pxn: True if GPUs send by the NIC of the GPU that is on the receiver's rail (PXN). Default: true if a switch
            joins the GPUs of a server.
        qps: Queue pairs of a connection between servers, which its messages take in turn (NCCL_IB_QPS_PER_CONNECTION).
            Default 1.
        repetitions: Number of rounds, one after another (default 1). A host begins the next round when its part of the
            previous one has ended.
    """

    kind: ClassVar[str | None] = "nccl"
    operation: Operation
    size: Size
    algorithm: NcclAlgorithm | None = None
    bandwidth: float | None = None
    channels: int | None = None
    cpu: Cpu | None = None
    gpu: Gpu | None = None
    group_size: GroupSize | None = None
    groups: list[HostList] | None = None
    latency: float | None = None
    most_messages: int | None = None
    placement: Placement | None = None
    protocol: NcclProtocol | None = None
    pxn: bool | None = None
    qps: int | None = None
    repetitions: int | None = None


@dataclass(kw_only=True, repr=False)
class MoeWorkload(WorkloadTable):
    """Mixture-of-experts layers: tokens go to the hosts of their experts and come back.

    Args:
        token_size: Size of a token, such as 14,336 B: 7,168 values of 2 B (DeepSeek-V3).
        tokens: Number of tokens of each host.
        attention: Duration of a host's computation before its dispatch (default 0).
        exchange: Concurrency of the messages of dispatch and combine. Default "direct".
        expert: Duration of a host's computation between dispatch and combine, for the mean number of tokens (default
            0). It is proportional to the number of tokens that the host has received.
        group_size: Number of hosts in a group, or a list of numbers, one for each group. Default: one group of all
            hosts.
        groups: Hosts of each group: a list of numbers, names and patterns, or a pattern such as "srv[0-3].gpu*".
            Replaces `group_size` and `placement`. Default: none.
        layers: Number of layers in an iteration (default 1).
        placement: Assignment of hosts to groups. Default "consecutive".
        repetitions: Number of iterations, one after another (default 1).
        skew: Exponent of the popularity of hosts, 0 to 10: 0 for equal popularity, 1 for Zipf's law (default 0).
        top_k: Number of hosts to which each token is sent, at most the number of hosts in a group (default 2, as in
            Mixtral).
    """

    kind: ClassVar[str | None] = "moe"
    token_size: Size
    tokens: int
    attention: Time | None = None
    exchange: Exchange | None = None
    expert: Time | None = None
    group_size: GroupSize | None = None
    groups: list[HostList] | None = None
    layers: int | None = None
    placement: Placement | None = None
    repetitions: int | None = None
    skew: float | None = None
    top_k: int | None = None


@dataclass(kw_only=True, repr=False)
class PipelineWorkload(WorkloadTable):
    """Pipeline-parallel training: stages pass activations on and gradients back.

    Args:
        activation: Size of a message between stages for one microbatch, forward and backward: microbatch x sequence x
            hidden size x bytes per value.
        microbatches: Number of microbatches in an iteration.
        backward: Duration of a stage's backward computation for one microbatch (default 0). It is about twice
            `forward`, because it has twice the multiplications.
        forward: Duration of a stage's forward computation for one microbatch (default 0).
        groups: Hosts of each pipeline in the order of its stages: a list of numbers, names and patterns, or a pattern
            such as "srv*.gpu0". Replaces `stages` and `placement`. Default: none.
        placement: Assignment of hosts to pipelines. Default "consecutive".
        repetitions: Number of iterations, one after another (default 1).
        schedule: Order of a stage's computations. Default "1f1b".
        stages: Number of stages in a pipeline, 2 or more, one host each. Default: one pipeline of all hosts.
    """

    kind: ClassVar[str | None] = "pipeline"
    activation: Size
    microbatches: int
    backward: Time | None = None
    forward: Time | None = None
    groups: list[HostList] | None = None
    placement: Placement | None = None
    repetitions: int | None = None
    schedule: Schedule | None = None
    stages: int | None = None


@dataclass(kw_only=True, repr=False)
class TrainingWorkload(WorkloadTable):
    """Data-parallel training: gradients of real models, reduced while backward still computes.

    Args:
        model: Network that is trained.
        backward: Duration of the backward pass. Default: 109 ms for resnet-50 and 148 ms for vgg-16, two thirds of the
            same iteration.
        bucket_cap: Size from which a bucket is full, bytes (default 25 MiB, as in PyTorch). "0B" reduces every tensor
            by itself. Tensors are not split.
        bytes_per_parameter: Bytes of the gradient of one parameter, 1 to 8: 4 in single precision, 2 in half precision
            (default 4).
        first_bucket: Size from which the first bucket of an iteration is full, bytes (default 1 MiB, as in PyTorch). It
            is smaller so that communication begins early.
        forward: Duration of the forward pass. Default: 55 ms for resnet-50 and 74 ms for vgg-16. These are a third of
            an iteration of 32 images at 195 and 144 images/s (TensorFlow r1 benchmarks, one Tesla P100).
        group_size: Number of hosts that train together, or a list of numbers, one for each group. Default: one group of
            all hosts.
        iterations: Number of iterations, one after another (default 1).
        placement: Assignment of hosts to groups. Default "consecutive".
        scale: Factor on all sizes and durations, above 0 and at most 1, for quick runs (default 1). The ratio of
            computation to communication stays the same; the ratio to latency does not.
    """

    kind: ClassVar[str | None] = "training"
    model: Model
    backward: Time | None = None
    bucket_cap: Size | None = None
    bytes_per_parameter: int | None = None
    first_bucket: Size | None = None
    forward: Time | None = None
    group_size: GroupSize | None = None
    iterations: int | None = None
    placement: Placement | None = None
    scale: float | None = None


@dataclass(kw_only=True, repr=False)
class TransformerWorkload(WorkloadTable):
    """Training of a transformer, dense or with experts: tensor, expert, data and pipeline parallelism from a few
    numbers.

    Args:
        algorithms: Algorithms of collectives.
        bytes_per_gradient: Bytes of the gradient of one parameter, 1 to 8 (default 2).
        bytes_per_value: Bytes of one value of activations and weights, 1 to 8 (default 2).
        cp: Fields of stages: number of GPUs that share each sequence, for context parallelism (default 1).
        cp_kind: Fields of stages: way in which these GPUs get the keys and values of other tokens.
        efficiency: Part of the peak rate of `gpu` that large matrix products reach, above 0 and at most 1. Default:
            0.72 with 16 bits, 0.6 with 8 bits. Products of experts reach 0.45 by default, and change in the same
            proportion.
        ep: Number of GPUs in an expert-parallel group; it must divide the number of replicas and the number of experts
            (default 1).
        etp: Fields of stages: number of GPUs that share the matrices of an expert (default: `tp`).
        experts: Number of experts in each layer. Default: that of `model`, otherwise 1, a dense model.
        feed_forward: Matrices of the feed-forward part. Default: those of `model`, otherwise gated.
        feed_forward_hidden: Size of the vector inside the feed-forward part, or inside an expert, in values. Default:
            that of `model`.
        global_batch: Number of sequences in an iteration, over all replicas, in place of `microbatches`: a multiple of
            the replicas times `micro_batch`. Jobs with other parallelism then do the same work.
        gpu: Fields of stages: GPU, whose data sheet gives times of computations, and its memory.
        gpus: Number of GPUs, a multiple of TP x PP. It determines the number of data-parallel replicas. Default: all
            hosts.
        head_dim: Values of an attention head. Default: that of `model`, otherwise `hidden` / `heads`.
        heads: Number of attention heads. Default: that of `model`.
        hidden: Size of the vector of a token, in values. Default: that of `model`.
        hosts: Host of each GPU in order: a list of numbers, names and patterns, or a pattern such as "srv[0-3].gpu*".
            Default: GPU g is on host g.
        iterations: Number of iterations, one after another (default 1).
        kv_heads: Number of heads of keys and values. Default: that of `model`, otherwise `heads`.
        layers: Number of layers. Default: that of `model`.
        micro_batch: Number of sequences in a microbatch (default 1).
        microbatches: Number of microbatches in an iteration, for each replica (default 1).
        model: Model whose numbers are the defaults of `layers` to `feed_forward`: the name of a published one, or its
            file, `{ file = "config.json" }`. Without it these fields are required, except `kv_heads`, `head_dim`,
            `experts`, `top_k` and `feed_forward`. A file needs `sequence`, too, and a `model_type` of llama,
            llama4_text, mistral, mixtral, qwen2, qwen2_moe, qwen3, qwen3_moe, gemma, gemma2, gemma3_text, gpt_oss,
            glm4_moe, minimax_m2, nemotron, deepseek_v2, deepseek_v3 or kimi_k2.
        optimizer: Distribution of the optimizer's state among ranks. Default "distributed".
        order: Fields of stages: order in which GPUs are numbered along the axes, fastest first (default
            "tp-cp-ep-dp-pp").
        pp: Number of pipeline stages (default 1). Without fields of stages it must divide the number of layers.
        precision: Precision of matrix products of `gpu` (default "bf16").
        recompute: Fields of stages: activations that the backward pass computes again.
        scale: Factor on all sizes and durations, above 0 and at most 1, for quick runs (default 1). The ratio of
            computation to communication stays the same; the ratio to latency does not.
        schedule: Fields of stages: order in which a stage processes microbatches. Default: "interleaved" if `vp` is
            above 1, "1f1b" if other fields of stages are given, otherwise "gpipe".
        sequence: Number of tokens in a sequence. Default: that of `model`.
        stage_layers: Fields of stages: number of layers of each chunk, in the order of the model: PP x VP numbers.
            Default: as equal as possible, with fewer at both ends of the model.
        tflops: Computing rate that a GPU achieves, in 10^12 multiplications and additions per second, in place of the
            times of `gpu`. Default without `gpu`: 400, which is 40 % of the peak of an H100, and the rate at which
            Llama 3 was trained (Grattafiori et al., 2024, table 4).
        top_k: Number of experts to which a token is sent. Default: that of `model`, otherwise 1.
        tp: Number of GPUs in a tensor-parallel group (default 1).
        vocabulary: Number of tokens in the vocabulary. Default: that of `model`.
        vp: Fields of stages: number of chunks of layers of a stage, for `schedule = "interleaved"` (default 1).
    """

    kind: ClassVar[str | None] = "transformer"
    algorithms: Algorithms | None = None
    bytes_per_gradient: int | None = None
    bytes_per_value: int | None = None
    cp: int | None = None
    cp_kind: ContextParallelism | None = None
    efficiency: float | None = None
    ep: int | None = None
    etp: int | None = None
    experts: int | None = None
    feed_forward: FeedForward | None = None
    feed_forward_hidden: int | None = None
    global_batch: int | None = None
    gpu: GpuModel | None = None
    gpus: int | None = None
    head_dim: int | None = None
    heads: int | None = None
    hidden: int | None = None
    hosts: HostList | None = None
    iterations: int | None = None
    kv_heads: int | None = None
    layers: int | None = None
    micro_batch: int | None = None
    microbatches: int | None = None
    model: ModelChoice | None = None
    optimizer: Optimizer | None = None
    order: str | None = None
    pp: int | None = None
    precision: Precision | None = None
    recompute: Recomputation | None = None
    scale: float | None = None
    schedule: PipelineSchedule | None = None
    sequence: int | None = None
    stage_layers: list[int] | None = None
    tflops: float | None = None
    top_k: int | None = None
    tp: int | None = None
    vocabulary: int | None = None
    vp: int | None = None


@dataclass(kw_only=True, repr=False)
class ChakraWorkload(WorkloadTable):
    """An execution trace of MLCommons Chakra: computations, sends and receives, collectives.

    Args:
        trace: Folder of the trace, or the prefix PREFIX of its files PREFIX.0.et, PREFIX.1.et, ..., relative to the
            scenario.
        algorithms: Algorithms of collectives.
        dims: Sizes of the dimensions of ranks, innermost first, for collectives that the trace restricts with
            `involved_dim`. Their product is the number of ranks. Default: none, and such collectives are an error.
        hosts: Host of each rank in order: a list of numbers, names and patterns, or a pattern such as "srv[0-3].gpu*".
            Default: rank r is on host r.
        peak_tflops: Computing rate of a rank, 10^12 operations per second. It applies to computations for which the
            trace states operations but no duration. Default: they take no time.
        process_groups: JSON file of the process groups that the trace names, as in ASTRA-sim: `{"name": [ranks], ...}`.
            Default: the groups that the trace itself lists, as traces of PyTorch do. A collective without a group name
            is one of all ranks, and so is one of group "0" if no list has it.
    """

    kind: ClassVar[str | None] = "chakra"
    trace: str
    algorithms: Algorithms | None = None
    dims: list[int] | None = None
    hosts: HostList | None = None
    peak_tflops: float | None = None
    process_groups: str | None = None


@dataclass(kw_only=True, repr=False)
class GoalWorkload(WorkloadTable):
    """A schedule of LogGOPSim or ATLAHS (GOAL): computations, sends and receives that wait for each other.

    Args:
        file: File of the schedule, relative to the scenario.
        eager: Largest size of an eager send, which ends for its rank as soon as it begins (S of LogGOPSim). Default: 0,
            no send is eager.
        hosts: Host of each rank in order: a list of numbers, names and patterns, or a pattern such as "srv[0-3].gpu*".
            Default: rank r is on host r.
    """

    kind: ClassVar[str | None] = "goal"
    file: str
    eager: Size | None = None
    hosts: HostList | None = None


@dataclass(kw_only=True, repr=False)
class SimaiWorkload(WorkloadTable):
    """A workload file of SimAI: layers with tensor-, expert-, data- and pipeline-parallel groups.

    Args:
        file: Workload file, relative to the scenario, or the name of a built-in one: "moe-9216gpu".
        algorithms: Algorithms of collectives.
        ep: Number of GPUs in an expert-parallel group; it must divide the number of replicas. Default: the number in
            the file, otherwise 1.
        gpus: Number of GPUs, a multiple of TP x PP. It determines the number of data-parallel replicas. Default: the
            number in the file, otherwise all hosts.
        hosts: Host of each GPU in order: a list of numbers, names and patterns, or a pattern such as "srv[0-3].gpu*".
            Default: GPU g is on host g.
        iterations: Number of iterations, one after another (default 1).
        microbatches: Number of microbatches, at most that of the file. Default: all of the file.
        pp: Number of pipeline stages. Default: the number in the file, otherwise 1.
        scale: Factor on all sizes and durations, above 0 and at most 1, for quick runs (default 1). The ratio of
            computation to communication stays the same; the ratio to latency does not.
        tp: Number of GPUs in a tensor-parallel or model-parallel group. Default: the number in the file. The sizes of
            collectives are those of the file, whatever the groups are.
    """

    kind: ClassVar[str | None] = "simai"
    file: str
    algorithms: Algorithms | None = None
    ep: int | None = None
    gpus: int | None = None
    hosts: HostList | None = None
    iterations: int | None = None
    microbatches: int | None = None
    pp: int | None = None
    scale: float | None = None
    tp: int | None = None


@dataclass(kw_only=True, repr=False)
class PoissonWorkload(WorkloadTable):
    """Flows between random hosts, sizes from a distribution, at a given load.

    Args:
        load: Offered payload as a fraction of the capacity, above 0 and at most 10; 1 is the full capacity. Headers are
            extra.
        sizes: Distribution of sizes: a name (see `pathweave list workloads`), or a file. Each line of a file is "BYTES
            PROBABILITY", separated by blanks or a comma, with probabilities from 0 to 1 or from 0 to 100.
        duration: Time during which flows arrive. Set either `duration` or `flows`.
        flows: Number of flows. Set either `flows` or `duration`.
        load_of: Capacity to which `load` refers: "host-links" is the sum of the rates of the hosts, "rack-uplinks" that
            of the links from racks upwards. Hosts of unequal rates send and receive in proportion to them. Default
            "host-links".
        pairs: Pairs of hosts between which flows go. Default "any".
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
        file: File of flows, relative to the scenario. Set either `flows` or `file`.
        flows: List of flows. Set either `flows` or `file`.
        format: Format of the file. Default "auto".
        rebase: True to shift all starts so that the first flow starts at once (files of ns-3 often begin at 2 s).
            Default: false.
    """

    kind: ClassVar[str | None] = "flows"
    file: str | None = None
    flows: list[FlowSpec] | None = None
    format: FlowFormat | None = None
    rebase: bool | None = None


@dataclass(kw_only=True, repr=False)
class ScenarioFile(Root):
    """Scenario with every shorthand expanded: presets are replaced by their settings, and defaults are filled in.

    Args:
        topology: Hosts, switches and links. `preset = "..."` instead of `kind` starts from a preset, whose fields can
            be set.
        workload: Traffic of the run: at least one workload.
        fault: Faults of links, switches and hosts during the run. Default: none.
        link: Other rates, delays and error rates for some links of the topology. Default: none.
        name: Name of the scenario, used in results and reports. Default: the file's name without ".toml".
        network: Packets: size, headers, and retransmission.
        observe: Observations recorded in addition to one record for each flow, job and link.
        pools: Sets of hosts, each for workloads that select it with `pool`: `name = number of hosts`, drawn with the
            seed; `name = "srv[0-3].gpu*"`, a pattern of names; a list of numbers, names and patterns; or a table.
            Disjoint unless `overlaps` allows it. Default: none.
        routing: Component that chooses the path of a packet: switches by a hash, sources among explicit paths, or the
            switch of the sender. Default "ecmp": switches by a hash.
        run: End and execution of the run. By default it ends when all foreground messages are done.
        scheme: Scheme of all messages whose workload sets none: the name of a scheme, or a table whose `base` is a name
            and whose other fields replace the preset's. Default "rps".
        schemes: Schemes of this scenario's own, by name.
        seed: Seed of all random streams. The same seed gives the same run on every machine. Default 1.
        switch: Settings of all switches.
    """

    topology: Topology
    workload: list[Workload]
    fault: list[Fault] | None = None
    link: list[LinkFor] | None = None
    name: str | None = None
    network: Network | None = None
    observe: Observe | None = None
    pools: dict[str, Pool] | None = None
    routing: Routing | None = None
    run: Run | None = None
    scheme: SchemeName | str | Scheme | None = None
    schemes: dict[str, SchemeName | str | Scheme] | None = None
    seed: int | None = None
    switch: Switch | None = None


# Class in which acknowledgements are queued.
# "control": Their own class, with strict priority.
# "data": The class of the data that they acknowledge.
AckClass: TypeAlias = Literal["control", "data"]


# Algorithm by which a collective is done.
# "ring": Ring of n - 1 steps, or 2(n - 1) for an all-reduce. A broadcast or reduction passes along the ring as a chain,
#   chunk by chunk.
# "double-binary-tree": All-reduce over two binary trees: up to the root and down again, with half of the vector on each
#   tree, chunk by chunk.
# "halving-doubling": Exchange with partners at distances that halve or double. All operations other than all-reduce
#   need a power of two of ranks.
# "hierarchical": All-reduce within servers, between servers, and within servers again, each around rings.
# "direct": All-to-all with all messages at once.
# "pairwise": All-to-all in n - 1 steps. Each step waits for the one before.
# "bruck": All-to-all in about log2 n steps. Ranks forward the blocks of other ranks.
# "binomial": Broadcast or reduction over a binomial tree.
Algorithm: TypeAlias = Literal[
    "ring", "double-binary-tree", "halving-doubling", "hierarchical", "direct", "pairwise", "bruck", "binomial"
]


# Unit in which `alpha` is measured.
# "noise": The unit of "delay", but at least forty times the average difference between two successive delays of one
#   path. If queues are random, a difference of delays predicts little, and senders that follow it collide on the same
#   paths. If one path is always slower, the difference predicts well. With this unit alpha adapts to the noise of a
#   fabric.
# "delay": The shortest delay of any path, at least the threshold. Feedback of a path is as old as its delay, so the
#   longer the delay, the less a difference should count. With a fixed unit all senders take the shorter of two long
#   queues at once, and make it the longer one.
# "threshold": The threshold T (the authors' code).
AlphaUnit: TypeAlias = Literal["noise", "delay", "threshold"]


# Time at which the sender announces the length of a message.
# "first_packet": The time at which its first packet leaves.
# "post": The time at which it is posted.
Announce: TypeAlias = Literal["first_packet", "post"]


# Arithmetic in which the weights of paths are computed.
# "float": Floating point, by the equation.
# "fixed": Integers of the circuit in `hardware/laps`: delays in ticks of 1,024 ps up to 17.2 ms, weights of 24 bits.
Arithmetic: TypeAlias = Literal["float", "fixed"]


# Switch chip, which stands for its packet memory. The sizes are approximate: vendors' announcements and reports, and a
#   guess where there is none.
# "tomahawk-3": Broadcom Tomahawk 3, 12.8 Tb/s: 64 MB.
# "tomahawk-4": Broadcom Tomahawk 4, 25.6 Tb/s: 114 MB.
# "tomahawk-5": Broadcom Tomahawk 5, 51.2 Tb/s: 165 MB.
# "spectrum-4": NVIDIA Spectrum-4, 51.2 Tb/s: 160 MB.
# "silicon-one-g200": Cisco Silicon One G200, 51.2 Tb/s: 256 MB.
# "trident-4": Broadcom Trident 4, 12.8 Tb/s: 132 MB.
# "jericho-3": Broadcom Jericho 3, with packet memory outside of the chip (HBM): 1 GB.
# "quantum-2": NVIDIA Quantum-2 (InfiniBand NDR), whose memory is not public: 64 MB, a guess.
Asic: TypeAlias = Literal[
    "tomahawk-3", "tomahawk-4", "tomahawk-5", "spectrum-4", "silicon-one-g200", "trident-4", "jericho-3", "quantum-2"
]


# Request of a sender that has credit from several receivers.
# "shared": Asks each receiver for its share.
# "whole": Asks each receiver for all it could use.
Ask: TypeAlias = Literal["shared", "whole"]


# Attachment of NIC ports to the hosts of the scale-out network.
Attach: TypeAlias = Literal["rail", "server"] | list[int]


# Rule by which NIC ports are attached.
# "rail": A leaf holds one rail of one unit: the NICs with equal number of its servers. The ports of a NIC are attached
#   to leaves side by side.
# "server": All ports of a server follow each other. With `unit`, the NICs of that many servers share leaves, and the
#   ports of a NIC are attached to leaves side by side.
AttachRule: TypeAlias = Literal["rail", "server"]


# a size with its unit, such as "8MB" or "4KiB"
Size: TypeAlias = str


# Check of a flow simulation against packets.
# "auto": Check runs that show signs of being outside of the model.
# "off": Check no run.
# "prefix": Check every run, and use links to the share that packets of its beginning used.
Calibrate: TypeAlias = Literal["auto", "off", "prefix"]


# A congestion control with its parameters.
Cc: TypeAlias = (
    NoneCc | DcqcnCc | DctcpCc | DctcpRateCc | HpccCc | MswiftCc | NsccCc | SmarttCc | StrackCc | SwiftCc | TimelyCc
)


# Effect of an unmarked notice, besides requesting copies.
# "shield": The announced packets do not count as lost for `wait`, as with a marked notice. The requested copies are a
#   round trip away; until then every packet of the new path would indicate a loss.
# "expose": No effect (DLBF as printed).
CleanNotice: TypeAlias = Literal["shield", "expose"]


# Congestion notifications of the receiver (DCQCN's notification point).
CnpPolicy: TypeAlias = OffCnpPolicy | OnMarkCnpPolicy | OnMarkOrGapCnpPolicy


# Time of a host's computation within a round.
# "after": The host computes after its part of the collective.
# "beside": The host computes while it communicates. The round ends when both have ended.
ComputeWhen: TypeAlias = Literal["after", "beside"]


# Bytes that the metrics of CONGA count.
# "sent": Bytes that links have sent. Metrics are limited to the largest number of `metric_bits`, and every packet
#   carries them (the CONGA paper).
# "routed": Data bytes that were assigned to a link, still queued or not, without that limit. Only data packets are
#   balanced and carry metrics, and the metric fed back next is drawn at random (conweave-ns3).
CongaCounts: TypeAlias = Literal["sent", "routed"]


# Way in which GPUs that share a sequence get the keys and values of other tokens.
# "ring": They pass them around a ring while attention computes (Liu et al., "Ring attention", 2023).
# "gather": They gather all of them before attention begins, as in the training of Llama 3.
ContextParallelism: TypeAlias = Literal["ring", "gather"]


# Events that cooling down counts.
# "answers": Answers, at the same intervals as before, so that the sender sees the delay fall.
# "literal": Packets, each of which is answered, as in the paper. At 100 Gb/s all leave within 0.4 us.
CoolMode: TypeAlias = Literal["answers", "literal"]


# Core switches to which an aggregation switch connects.
# "planes": The j-th aggregation switch of every pod connects to the j-th plane of `cores / aggs_per_pod` cores.
# "full-mesh": Every aggregation switch connects to every core.
CoreWiring: TypeAlias = Literal["planes", "full-mesh"]


# Processor of the servers.
# "intel": Intel x86.
# "amd": AMD x86.
# "arm": Arm, as in Grace.
Cpu: TypeAlias = Literal["intel", "amd", "arm"]


# A named parameter set.
# "hpcc": Values that the HPCC authors used for DCQCN.
# "paper": Values of the DCQCN paper.
# "conweave": Values that the ConWeave authors used.
# "laps": Values that the LAPS authors used.
# "astra": Defaults of ASTRA-sim's ns-3 back end.
DcqcnPreset: TypeAlias = Literal["hpcc", "paper", "conweave", "laps", "astra"]


# Effect of a mark on the window.
# "half_packet": Every marked acknowledgement removes half a packet (NSDI 2018).
# "half_window": A marked acknowledgement halves the window, at most once a round trip. Not MP-RDMA.
# "half_window_each_mark": Every marked acknowledgement halves the window. Not MP-RDMA.
Decrease: TypeAlias = Literal["half_packet", "half_window", "half_window_each_mark"]


# Order of delivery.
# "unordered": In order of completion.
# "ordered": In order of posting.
Delivery: TypeAlias = Literal["unordered", "ordered"]


# Rule for grants.
# "target": The amount missing to the pull target.
# "full": Full grants while anything is missing; trimmed packets first.
# "arrivals": One grant for each packet that arrives, up to the pull target.
Demand: TypeAlias = Literal["target", "full", "arrivals"]


# Scope of the path state: the queue pairs whose acknowledgements update it.
# "host_pair": All queue pairs between the two hosts.
# "queue_pair": The queue pair itself.
DlbfScope: TypeAlias = Literal["host_pair", "queue_pair"]


# Variant of the algorithm.
# "published": The rules as printed. One delay gap, that of the path just left, applies to all packets in flight
#   (equations 1 to 3). Every marked acknowledgement of the path in use triggers a switch.
# "repaired": The rules with four repairs. First, the delay gap of a packet is that of the path it took, so that two
#   switches in quick succession do not hide a slow path. Second, there is at most one switch per round-trip time,
#   because otherwise marks of unknown paths use up all of them. Third, a timeout counts as congestion. Fourth, a path
#   of unknown delay is measured by a notice while data stays on the old path, and is used if the reply is unmarked. A
#   switch before the gap is known would gain nothing, because early packets wait at the receiver, and would cost the
#   order.
DlbfVariant: TypeAlias = Literal["published", "repaired"]


# Rule by which the senders of an incast are drawn.
# "independent": Senders are drawn for each receiver among all other hosts. A host may send to several receivers.
# "disjoint": Each host sends to one receiver at most, and receivers do not send.
Draw: TypeAlias = Literal["independent", "disjoint"]


# Variant of DRILL.
# "published": One memory for each set of next hops, which wins only if it is better. A queue includes the rest of the
#   packet in transmission.
# "conweave-ns3": The variant of conweave-ns3. One memory for each destination, which wins also if others are equally
#   good. All sampled ports differ. The packet in transmission does not count, and control packets are forwarded by
#   hash.
DrillVariant: TypeAlias = Literal["published", "conweave-ns3"]


# a time with its unit, such as "1us" or "500ns"
Time: TypeAlias = str


# Effect of the peer's acknowledgements on the congestion control of a flow to another site.
# "none": No effect, as in the paper: once the edge is silent, a flow that was slowed down stays slow.
# "hold": Each acknowledgement updates the congestion control once, with the round-trip time of the last echo. After
#   `hold_for` without an echo it uses the idle round-trip time: silence means there is no queue.
E2eMode: TypeAlias = Literal["none", "hold"]


# Seeds of the hash of source, destination and path entropy by which switches choose among equal-cost next hops.
# "seeded": Each switch has a seed of its own.
# "polarised": All switches have the same seed: successive tiers repeat each other's choice (hash polarisation).
EcmpHash: TypeAlias = Literal["seeded", "polarised"]


# Answers of the edge of a site that update the rate.
# "every": Every answer: the edge chooses their interval.
# "per_round_trip": One answer per round-trip time to the edge, for a packet sent after the last update (the simulator
#   of HPCC updates once the acknowledged number has passed that of the next packet at the last update).
EdgeUpdates: TypeAlias = Literal["every", "per_round_trip"]


# Place of ERD's header.
# "inside_mtu": The header counts as payload of the NIC's packet.
# "outside_mtu": The header does not count as payload.
EethPlace: TypeAlias = Literal["inside_mtu", "outside_mtu"]


# Concurrency of the messages of an exchange of tokens.
# "direct": Each host sends all its messages at once.
# "pairwise": Each host sends one message at a time: first to the next host, then to the one after it, and so on.
Exchange: TypeAlias = Literal["direct", "pairwise"]


# Reaction of a receiver to a fabric that cannot carry what it grants.
# "off": No reaction.
FabricControl: TypeAlias = Literal["off"] | PacedFabricControl


# A scheduled fault. All times are simulated time since the start of the run.
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


# Matrices of the feed-forward part of a layer.
# "plain": Two matrices, as in GPT-3.
# "gated": Three matrices, one of which gates another (Shazeer, "GLU variants improve transformer", 2020).
FeedForward: TypeAlias = Literal["plain", "gated"]


# Model of the traffic of a run.
# "packet": Every packet is simulated.
# "flow": Messages are simulated as fluid flows that share links.
Fidelity: TypeAlias = Literal["packet", "flow"]


# Format of a file of flows.
# "auto": Detects the format: CSV if the name ends in ".csv", htsim if it ends in ".cm", otherwise HPCC or ConWeave by
#   the number of columns.
# "csv": Comma-separated values with column names: src, dst, size_bytes, and optionally start_ns, id, after,
#   after_delays_ns, after_moments (delivery or completion), after_count, delay_ns, connection.
# "hpcc": `flow.txt` of HPCC: src dst pg dport bytes start_seconds.
# "conweave": `flow.txt` of ConWeave: src dst pg bytes start_seconds.
# "htsim": Connection matrix of htsim, with triggers. Starts are microseconds (uet-htsim) or picoseconds (csg-htsim).
#   They are picoseconds if one of them would be a second or later as microseconds. A note states which.
# "uet-htsim": Connection matrix of uet-htsim, with starts in microseconds.
# "csg-htsim": Connection matrix of csg-htsim, with starts in picoseconds.
FlowFormat: TypeAlias = Literal["auto", "csv", "hpcc", "conweave", "htsim", "uet-htsim", "csg-htsim"]


# Host of a flow.
FlowHost: TypeAlias = int | str


# Folding of equivalent ranks.
# "auto": Fold large jobs.
# "always": Fold every job. An error if no ranks are alike.
# "never": Fold no job.
Fold: TypeAlias = Literal["auto", "always", "never"]


# Skipped paths whose penalty falls by one.
# "first": The first skipped path (uet-htsim): several bad paths in a row recover slowly.
# "each": Each skipped path (EQDS).
Forgives: TypeAlias = Literal["first", "each"]


# Choice of a switch among equal-cost next hops.
# "ecmp": Hash of source, destination and path entropy.
# "wcmp": Hash as for ECMP, with shares in proportion to the capacity that each next hop has to the destination (WCMP,
#   EuroSys 2014).
# "rps": A random next hop for every packet.
# "weighted-rps": A random next hop for every packet, with shares by capacity.
# "letflow": A random next hop for every flowlet (LetFlow, NSDI 2017).
# "drill": For every packet the next hop with the shortest queue among a few random ones and the best of the previous
#   choice (DRILL, SIGCOMM 2017).
# "ugal": For every packet the shortest route, or a route by a random intermediate switch if its queue is shorter
#   (UGAL-L, ISCA 2008; made for Dragonfly). Each host must be attached to a single switch.
# "conga": For every flowlet the least congested route to the leaf of the receiver (CONGA, SIGCOMM 2014). Each host must
#   be attached to a single switch.
# "conweave": Flows leave routes with a long round-trip time, and the switch of the receiver restores their order
#   (ConWeave, SIGCOMM 2023). Each host must be attached to a single switch.
Forwarding: TypeAlias = Literal["ecmp", "wcmp", "rps", "weighted-rps", "letflow", "drill", "ugal", "conga", "conweave"]


# Rule by which header bytes of a packet are counted.
# "rocev2": RoCEv2 over Ethernet as in the standard, the default: preamble and gap 20 bytes, Ethernet 14, IPv4 20, UDP
#   8, BTH 12, ICRC 4, FCS 4. RETH takes 16 on the first packet of a WRITE and on READ requests, ImmDt 4 on the last
#   packet of a message with immediate. AETH takes 4 on acknowledgements and on all but the middle packets of a READ
#   response. Congestion notifications and our probes have 16 bytes. Payload is padded to a multiple of 4 bytes; frames
#   have at least 64 bytes. Packets of datagram queue pairs have RDETH 4, DETH 8 and ERD's header, 9. Our extension
#   header is not counted, as adapters on the market do not send it.
# "ns3": Count of the ns-3 RDMA simulators: 48 bytes of header on every packet, and 60 bytes for an acknowledgement.
# "pathweave": Exactly the bytes that the datapath sends: the frame that [`emit`](crate::emit) writes, plus FCS,
#   preamble and gap.
Framing: TypeAlias = Literal["rocev2", "ns3", "pathweave"]


# Model of GPU, as far as collectives depend on it.
# "v100": NVIDIA V100: six links of 25 GB/s.
# "a100": NVIDIA A100: twelve links of 25 GB/s.
# "a800": NVIDIA A800: eight links of 25 GB/s.
# "h100": NVIDIA H100: eighteen links of 25 GB/s.
# "h200": NVIDIA H200, an H100 with more memory.
# "h800": NVIDIA H800: eight links of 25 GB/s.
# "h20": NVIDIA H20, an H100 with fewer cores.
# "b200": NVIDIA B200: eighteen links of 50 GB/s.
# "b300": NVIDIA B300, a B200 with more memory.
# "gb200": NVIDIA GB200: the GPU of NVL72 racks with Arm processors.
# "gb300": NVIDIA GB300: likewise.
# "mi300x": AMD MI300X: a link of 64 GB/s to each of seven others.
Gpu: TypeAlias = Literal[
    "v100", "a100", "a800", "h100", "h200", "h800", "h20", "b200", "b300", "gb200", "gb300", "mi300x"
]


# GPU by name. Rates are those of dense matrices.
# "a100": NVIDIA A100 with 80 GB.
# "h100": NVIDIA H100 with 80 GB.
# "h200": NVIDIA H200 with 141 GB.
# "h800": NVIDIA H800 with 80 GB.
# "h20": NVIDIA H20 with 96 GB.
# "b200": NVIDIA B200 with 180 GB.
# "gb200": GPU of NVIDIA GB200, with 186 GB.
# "gb300": GPU of NVIDIA GB300, with 279 GB.
# "mi300x": AMD Instinct MI300X with 192 GB.
GpuModel: TypeAlias = Literal["a100", "h100", "h200", "h800", "h20", "b200", "gb200", "gb300", "mi300x"]


# Marking in the queues of GPUs that forward.
# "unmarked": GPUs do not mark packets, and the host knows the rates of its GPU's ports.
# "marked": GPUs mark packets as all switches do, as in the evaluation of LAPS.
GpuQueues: TypeAlias = Literal["unmarked", "marked"]


# Bytes of the receiver's link that a grant occupies in pacing.
# "granted": The bytes that it grants.
GrantCost: TypeAlias = Literal["granted"] | PacketGrantCost


# Number of hosts in a group.
GroupSize: TypeAlias = int | list[int]


# Host by its number in the workload, or hosts by a name or a pattern of names.
HostRef: TypeAlias = int | str


# Hosts: a list of numbers, names and patterns, or one pattern.
HostList: TypeAlias = str | list[HostRef]


# Time stamp that hosts read in the acknowledgements of flows from other sites.
# "renewed": Time at which the data left this switch, as in the paper. Hosts that use it as a round trip measure only
#   the way from this switch on.
# "restored": Time at which the data left its host. The switch remembers it and writes it into the acknowledgement.
HostStamp: TypeAlias = Literal["renewed", "restored"]


# Acknowledgements that change the rate.
# "every_ack": Each one, from a reference rate that changes once a round trip (Algorithm 1).
# "round_trip": One a round trip.
HpccReaction: TypeAlias = Literal["every_ack", "round_trip"]


# Grants to senders that want nothing.
# "on": Granted while no sender wants anything.
# "off": Never granted.
IdleGrants: TypeAlias = Literal["on", "off"]


# Round trip in which a window grows by `increase`.
# "path": The round trip to the peer. Over a WAN this is a packet per millisecond, so a window that was cut on feedback
#   of a near switch stays small for seconds.
# "measured": The round trip that is measured. The rate grows as much as that of a flow that ends there, one packet of
#   its window per round trip. The window then grows as fast as it shrinks.
IncreaseOver: TypeAlias = Literal["path", "measured"]


# Random variation of the durations of computations.
Jitter: TypeAlias = UniformJitter | LogNormalJitter | PausesJitter


# Variant of the algorithm: that of pathweave, of the paper or of its authors' code.
# "repaired": Variant of pathweave. One silent path is probed before a data packet, if data hardly takes it or gets no
#   acknowledgement there. A probe doubles the estimated delay of the path. The expected rate is at most the line rate.
#   After a change the rate stays until every path has shown the effect. Estimated delays do not count as congestion.
# "published": Variant of the paper, algorithms 1 and 2. All silent paths are probed. The expected rate is at most the
#   line rate, as the rate limiter of the NIC allows no more. After a change the rate stays for twice the shortest
#   delay. Estimated delays count as measured ones.
# "published_unbounded": Variant "published" without a bound on the expected rate: algorithm 2 prints none.
# "code_2025": Variant of the authors' code of January 2025. Probes overtake data, and a probe leaves the delay of its
#   path as last measured.
LapsVariant: TypeAlias = Literal["repaired", "published", "published_unbounded", "code_2025"]


# Marking by ports that lead to hosts.
# "mark": These ports mark like all others.
# "leave": These ports mark nothing.
LastHop: TypeAlias = Literal["mark", "leave"]


# Effect of a packet trimmed at the last hop.
# "cut": The window loses the packet's bytes.
# "spare": The window does not change.
LastHopTrims: TypeAlias = Literal["cut", "spare"]


# Library whose collectives a trace runs.
# "blocks": The algorithms of the other fields, over hosts.
# "nccl": NCCL, as `kind = "nccl"` executes it with its own choices, instead of the algorithms of the other fields.
Library: TypeAlias = Literal["blocks", "nccl"]


# Limit of a queue pair.
# "auto": In a fabric that pauses senders, which loses nothing by long queues: "window" if the application waits for all
#   messages of a step, and "delay_window" if it waits for each message by itself, since what is queued delays others.
#   Rate and window if switches drop, and on real hosts, which cannot know.
# "window": Only a window of the bytes that the line sends in two thresholds. This is the behaviour of the authors'
#   code, where the rate never reaches the pacer. A rate that was reduced because of a queue leaves the link idle once
#   the queue is empty, and takes several thresholds to recover. A window lets more data pass as the queue gets shorter.
# "delay_window": The window of "window" times the average of min(1, T / t), where t is the delay of the fastest path. A
#   packet of n flows that share all their paths, as in an incast, waits for sqrt(2 n) thresholds instead of 2 n.
#   WebSearch on the fabric of UDMP has three fifths of the P99 of "window"; a double binary tree takes 9 % longer.
# "rate_and_window": The rate (algorithm 2), by pacing, and that window.
# "rate_and_scaled_window": The rate and the window, with the window in proportion to the rate.
Limit: TypeAlias = Literal["auto", "window", "delay_window", "rate_and_window", "rate_and_scaled_window"]


# Capacity to which `load` refers.
# "host-links": Sum of the rates at which the hosts of the workload can send. Hosts of unequal rates begin and end flows
#   in proportion to them.
# "rack-uplinks": Capacity of the links from racks upwards, which is the bisection of a leaf-spine. Only flows between
#   racks count.
LoadOf: TypeAlias = Literal["host-links", "rack-uplinks"]


# Queueing by which a path may exceed its idle delay without being congested.
# "per_switch": A number of packets in the queue of every switch on the path (section III-E).
# "per_link": A number of packets on every link (the authors' code, which has one).
Margin: TypeAlias = Literal["per_switch", "per_link"]


# Time at which a packet is marked.
# "enqueue": On arrival, by the queue before the packet.
# "dequeue": On departure, by the queue that remains. The sender gets more recent information.
MarkAt: TypeAlias = Literal["enqueue", "dequeue"]


# Effect of a marked packet on the rate.
# "of_its_path": A congestion notification reduces the rate only while the packet's path is in use. It has no effect if
#   that path has been left. If the path is left because of the marks, the rate returns to its value before them.
# "reduced": A congestion notification reduces the rate, as without DLBF, and the path is left as well (the paper's
#   "DCQCN enabled").
# "kept": A congestion notification has no effect while there is another path that is not known to be congested.
MarkedRate: TypeAlias = Literal["of_its_path", "reduced", "kept"]


# Connections that carry the messages of a workload.
# "of-kind": The connections that the kind defines. Most kinds have one for each pair of processes.
# "own": One connection for each message, which begins at the rate of a new connection (as in ASTRA-sim with ns-3).
MessageConnections: TypeAlias = Literal["of-kind", "own"]


# A network whose training is simulated. Its input is a colour image of 224 x 224 pixels, its output 1,000 classes.
# "resnet-50": ResNet-50 with 25,557,032 parameters (He et al., "Deep residual learning for image recognition", CVPR
#   2016, table 1).
# "vgg-16": VGG-16 with 138,357,544 parameters (Simonyan and Zisserman, "Very deep convolutional networks for
#   large-scale image recognition", ICLR 2015, table 1, column D).
Model: TypeAlias = Literal["resnet-50", "vgg-16"]


# Model: the name of a published one, or a file.
ModelChoice: TypeAlias = (
    Literal[
        "gpt-3-175b",
        "llama-3-8b",
        "llama-3-70b",
        "llama-3-405b",
        "llama-4-scout",
        "llama-4-maverick",
        "qwen3-8b",
        "qwen3-32b",
        "qwen3-30b-a3b",
        "qwen3-235b-a22b",
        "qwen3-coder-480b",
        "deepseek-v3",
        "kimi-k2",
        "gpt-oss-20b",
        "gpt-oss-120b",
        "glm-4.5-air",
        "glm-4.5",
        "minimax-m2",
        "mixtral-8x7b",
        "mixtral-8x22b",
        "nemotron-4-340b",
        "mistral-large-2",
        "gemma-3-27b",
    ]
    | ModelFile
)


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
    "hpcc",
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
    "dlbf-wait",
    "dlbf-published",
    "erd",
    "erd-dcqcn",
    "erd-uncontrolled",
    "xrc",
    "rd",
]


# Algorithm of NCCL for a collective.
# "auto": The choice of NCCL's tuner for the size and the servers.
# "ring": Rings through all GPUs. A broadcast or reduction passes along them as a chain.
# "tree": Two binary trees of servers, each with half of the channels, and a chain inside each server.
# "nvls": Switches of the scale-up network reduce (NVLink SHARP), on one server.
# "nvls-tree": NVLS inside each server, and two trees of its heads between servers.
# "pat": Gather or scatter in logarithmic steps with aggregated messages, for servers with one GPU.
# "direct": Sends and receives of all pairs, for an all-to-all.
NcclAlgorithm: TypeAlias = Literal["auto", "ring", "tree", "nvls", "nvls-tree", "pat", "direct"]


# Protocol of NCCL for a collective.
# "auto": The choice of NCCL's tuner for the size and the servers.
# "ll": Low latency: a flag for each 4 bytes, so that links carry twice the bytes.
# "ll128": Low latency with 120 bytes of data in 128.
# "simple": Slots of a buffer with a barrier each.
NcclProtocol: TypeAlias = Literal["auto", "ll", "ll128", "simple"]


# Scope of a congestion notification, for datagrams with congestion control.
# "destination": The destination that sent the notification. Messages to other destinations are not slowed.
# "queue_pair": The queue pair, which has one rate for all its destinations, like that of a connection. It learns of
#   congestion before it has sent anything to most of them, but one slow destination slows all.
NotificationScope: TypeAlias = Literal["destination", "queue_pair"]


# Source of the rules where simulator and specification differ.
# "htsim": uet-htsim: an acknowledgement without a measurement counts as one of average delay. A loss without a trim
#   does not change the window.
# "ue1.0": The specification, from a second-hand description. Without a measurement the window does not change. A loss
#   removes its bytes from the window. If switches trim, delay alone does not trigger quick adapt. Clocks start when the
#   queue pair opens.
NsccProfile: TypeAlias = Literal["htsim", "ue1.0"]


# Packets sent on a new path before its data.
# "wait": None. Data waits until it can no longer overtake packets in flight on other paths. A notice is sent if the
#   delay of the path is unknown (section III-D). Copies would take as long as waiting, and cost their bytes.
# "copies_and_notices": Copies of the packets that would arrive late, and a notice if the delay of the path is unknown
#   (sections III-C and III-D).
# "copies": Copies always, and no notices. An unknown delay is taken from the path's last measurement, or else from the
#   fastest path.
# "notices": Notices if the delay of the path is unknown, and no copies.
# "nothing": None, and data does not wait.
OnSwitch: TypeAlias = Literal["wait", "copies_and_notices", "copies", "notices", "nothing"]


# Operation of a collective, named as in NCCL. Sizes are defined as in nccl-tests.
# "all-reduce": Every rank ends with the sum of all vectors. The size is that of the vector.
# "reduce-scatter": The vectors are added up and every rank ends with its share of the sum. The size is that of the
#   vector.
# "all-gather": Every rank ends with the parts of all ranks. The size is that of all parts together.
# "all-to-all": Every rank has a block for every rank. The size is that of all blocks of one rank, its block for itself
#   included.
# "broadcast": Rank 0 sends its vector to all ranks. The size is that of the vector.
# "reduce": Rank 0 ends with the sum of all vectors. The size is that of the vector.
Operation: TypeAlias = Literal["all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce"]


# Distribution of the optimizer's state among ranks.
# "distributed": Data-parallel ranks share the state: gradients are reduce-scattered, and weights are all-gathered when
#   the next iteration begins (Rajbhandari et al., "ZeRO", SC 2020, stage 1).
# "replicated": Every rank has the whole state: gradients are all-reduced.
# "sharded-gradients": Ranks share gradients, too, and reduce-scatter those of each layer after each microbatch (ZeRO,
#   stage 2). A field of stages.
# "sharded-weights": Ranks share weights, too. They all-gather those of a layer before its forward and its backward
#   pass, beside the layer before, and the vocabulary's matrices before their use (FSDP; ZeRO, stage 3). A field of
#   stages.
Optimizer: TypeAlias = Literal["distributed", "replicated", "sharded-gradients", "sharded-weights"]


# Rule that keeps the packets of a flow in order when it changes queues.
# "both": Packets of a flow join the queue in which packets of the same flow wait.
# "recovery": Guard recovery only, the change out of the controlled queue, as in the paper. Packets of a flow that
#   becomes congested may overtake each other.
# "off": No guard.
OrderGuards: TypeAlias = Literal["both", "recovery", "off"]


# Pairs of hosts between which flows go.
# "any": Any two hosts, from a uniform distribution if their rates are equal.
# "inter-rack": Two hosts in different racks: a sender as with "any", then a receiver in another rack.
# "intra-site": Two hosts in the same data centre.
# "inter-site": Two hosts in different data centres: a sender as with "any", then a receiver in another data centre.
Pairs: TypeAlias = Literal["any", "inter-rack", "intra-site", "inter-site"]


# Choice of paths in weave.
# "came_back_well": A path whose packets returned in time, marked or not, else a random one. One window serves all
#   paths, and no state is kept per path.
# "window_each": The least full path. Each path has a window of its own, which takes 32 bytes. Of more than 1,024 paths
#   the first are used.
PathChoice: TypeAlias = Literal["came_back_well", "window_each"]


# Timeout of a path: time without an acknowledgement after which all packets in flight on the path count as lost.
# "guarded": Twice the path's delay plus `rto_slack`, at least `rto_min`, from the first outstanding packet. Each
#   timeout in a row doubles it.
# "published": Twice the path's latest one-way delay, which any growing queue exceeds (LAPS, section III-G). Needs
#   synchronized clocks. Every packet sent resets the timer, and timeouts do not double it.
# "fixed": `rto_min` always (LAPS, its code). Every packet sent resets the timer, and timeouts do not double it.
PathRto: TypeAlias = Literal["guarded", "published", "fixed"]


# Paths of each pair of hosts.
PathSet: TypeAlias = OwnPathSet | AllShortestPathSet | KShortestPathSet | FilePathSet | LapsPathSet


# Rule by which receivers are assigned to senders.
# "random": Random receivers, drawn by seed. No host sends to itself.
# "inter-rack": Random receivers. Every flow is between different racks.
# "inter-pod": Random receivers. Every flow is between different pods.
# "shift": Host i sends to host i + `shift`, modulo the number of hosts.
Pattern: TypeAlias = Literal["random", "inter-rack", "inter-pod", "shift"]


# Kind of XOFF threshold.
# "dynamic": A share of the free shared buffer.
# "static": An equal part of the shared buffer for each port.
PfcThreshold: TypeAlias = Literal["dynamic", "static"]


# A path picker: its name, or a table of its name with its parameters (`{ plb = { forced_rounds = 6 } }`).
# "ecmp": One path for the life of the queue pair.
# "wcmp": One path for the life of the queue pair, drawn in proportion to the paths' rates.
# "rps": Every packet takes a random path.
# "weighted_rps": Every packet takes a random path, in proportion to the paths' rates.
# "per_message": Every message takes a random path.
# "round_robin": Packets take the paths in turn.
# "bitmap": Packets take the paths in turn; a marked path is skipped once.
# "oblivious": Packets take the paths in laps, each lap in a different order.
Picker: TypeAlias = (
    Literal["ecmp", "wcmp", "rps", "weighted_rps", "per_message", "round_robin", "bitmap", "oblivious"]
    | PenaltiesPicker
    | RecycledPicker
    | MixedPicker
    | PlbPicker
)


# Order in which a stage processes microbatches.
# "gpipe": All microbatches forward, then all backward (Huang et al., "GPipe", 2019).
# "1f1b": One forward, one backward, once the stages behind have work (Narayanan et al., "PipeDream", 2019).
# "interleaved": The same, where a stage has `vp` chunks of layers that are not adjacent (Narayanan et al., "Efficient
#   large-scale language model training on GPU clusters", SC 2021). Needs a multiple of `pp` microbatches.
# "zero-bubble": One forward, one backward; gradients of weights come later, while a stage would wait (Qi et al., "Zero
#   bubble pipeline parallelism", ICLR 2024, ZB-H1). Activations take as much memory as with 1f1b.
PipelineSchedule: TypeAlias = Literal["gpipe", "1f1b", "interleaved", "zero-bubble"]


# Assignment of hosts to groups.
# "consecutive": Consecutive hosts form a group: group 0 is hosts 0, 1, 2, ...
# "strided": Hosts at equal distances form a group: with G groups, group 0 is hosts 0, G, 2G, ...
# "random": Groups are drawn by seed.
Placement: TypeAlias = Literal["consecutive", "strided", "random"]


# A policy with its parameters. Serves as its factory.
Policy: TypeAlias = (
    SplitPolicy
    | UdmpPolicy
    | UdmpPublishedPolicy
    | MprdmaPolicy
    | MrcPolicy
    | DlbfPolicy
    | RepsPolicy
    | ReflexPolicy
    | LapsPolicy
    | WeavePolicy
)


# Set of hosts for workloads that select it with `pool`.
Pool: TypeAlias = int | str | list[HostRef] | PlacedPool


# Hosts of a pool.
PoolHosts: TypeAlias = int | str | list[HostRef]


# Rule by which the hosts of a pool are chosen.
# "random": Hosts or servers are drawn with the seed.
# "packed": The first free hosts or servers, in order of their numbers: a job stays within few leaves.
# "spread": Units take turns: a job has hosts or servers of as many units as possible. A unit consists of the servers of
#   a cluster whose first GPUs share a leaf, and in other networks of the hosts of a leaf.
PoolPlacement: TypeAlias = Literal["random", "packed", "spread"]


# Choice of the source ports of a queue pair.
# "any": Any source ports: several may hash to the same route.
# "distinct": One source port for each route that the fabric has to the receiver, up to `paths` of them, found by
#   evaluating the hashes of the switches. For simulations: hosts do not know these hashes, but can find such ports by
#   tracing.
Ports: TypeAlias = Literal["any", "distinct"]


# Precision of matrix products.
# "bf16": 16 bits.
# "fp8": 8 bits: also weights that are gathered and tokens that go to experts. Scores of attention keep 16 bits.
Precision: TypeAlias = Literal["bf16", "fp8"]


# Unit of credit.
# "packet": A packet of any size.
Quantum: TypeAlias = Literal["packet"] | BytesQuantum


# a rate with its unit, such as "100Gbps"
Rate: TypeAlias = str


# Target of a decrease.
# "to_share": Half the rate, but at least T / t of the line rate, the share that delay t indicates. At a delay of t a
#   window of two thresholds allows at most twice that rate.
# "half": Half the rate (algorithm 2).
RateCut: TypeAlias = Literal["to_share", "half"]


# Time at which the reaction point acts on a notification.
# "immediate": At once: the rate falls, then alpha rises, and the alpha timer restarts (SIGCOMM'15, section 3.1).
#   Assumes a notification point that limits the rate of its notifications.
# "sampled": At the next tick of two free-running clocks, which the first notification starts. Each checks whether a
#   notification arrived since its last tick: one moves alpha up or down, the other cuts the rate. The ns-3 models since
#   HPCC do the same (`RdmaHw::cnp_received_mlx`). The first cut, too, happens one `decrease_interval` after its
#   notification.
Reaction: TypeAlias = Literal["immediate", "sampled"]


# Activations that the backward pass computes again instead of keeping them.
# "none": None.
# "selective": Scores of attention (Korthikanti et al., "Reducing activation recomputation in large transformer models",
#   2022). Attention in tiles, which is assumed here, keeps none, so that this frees no memory.
# "full": All of a layer but its input.
Recomputation: TypeAlias = Literal["none", "selective", "full"]


# Loss recovery of the sender, and treatment of out-of-order packets at the receiver.
Recovery: TypeAlias = (
    GoBackNRecovery
    | GoBackNRepeatedRecovery
    | SelectiveRepeatRecovery
    | TimedRecovery
    | TimeoutsRecovery
    | SleekRecovery
    | PathOrderRecovery
)


# Reports of the receiver about packets that arrive ahead of a gap, in addition to acknowledgements.
Reordering: TypeAlias = SilentReordering | ReportedReordering


# Rule by which the receiver requests retransmissions.
# "overtaken": Requests packets that later packets have overtaken on every path, each of which keeps order, and the last
#   packets sent once the flow is silent. An unanswered request is repeated after twice the time.
# "two_scans": Requests packets that two scans a period apart found missing.
# "literal": Requests packets that one scan found missing below the highest packet, as printed.
# "never": Requests nothing.
Repair: TypeAlias = Literal["overtaken", "two_scans", "literal", "never"]


# Round trip within which ConWeave expects the reply to a probe on an idle network.
# "way": Round trip of the path that the probe takes, from switch to switch.
# "shortest": Twice the propagation delay from host to host on a shortest path, whatever path the probe takes (the study
#   of LAPS). On a longer path every reply is late, and the flow changes its path again.
ReplyAfter: TypeAlias = Literal["way", "shortest"]


# Priority of retransmissions over other packets.
# "first": Retransmissions leave before all other packets.
# "half": Retransmissions alternate with other packets, if both wait.
# "last": Retransmissions leave after all other packets.
RetryOrder: TypeAlias = Literal["first", "half", "last"]


# Scope of the order of packets on a path.
# "host": Packets of all queue pairs to a host: an acknowledgement of one detects losses of another (LAPS, its code).
# "queue_pair": Packets of one queue pair (LAPS, section III-D).
RingScope: TypeAlias = Literal["host", "queue_pair"]


# Role of a workload group in the run.
# "foreground": The group is measured. The run ends when the foreground is done.
# "background": The group is competing traffic. It is cut off when the foreground is done, and reported separately.
Role: TypeAlias = Literal["foreground", "background"]


# Form of source route whose bytes count as part of a packet.
# "none": No bytes, as in the ns-3 simulators, whose switches know routes by other means.
# "anchors": List of anchors: as few switches as pin the path, such that the shortest path between two successive ones
#   is unique. 8 bytes and 4 for each anchor. No bytes on a path that is itself the only shortest one.
# "hops": Egress port at every switch: 8 bytes and 2 for each switch, padded to a multiple of 4.
# "segments": A segment for every anchor, as in SRv6: 8 bytes and 16 for each segment.
RouteBytes: TypeAlias = Literal["none", "anchors", "hops", "segments"]


Routing: TypeAlias = (
    Literal["ecmp", "source", "sender-switch", "next-hops"]
    | EcmpRouting
    | SourceRouting
    | SenderSwitchRouting
    | NextHopsRouting
)


# Round-trip time that the period of the scan is measured in.
# "measured": Recent time from the request for a packet to its arrival.
# "configured": Round-trip time of the idle network.
RttSource: TypeAlias = Literal["measured", "configured"]


# Scale-up network of a server or rack, such as NVLink or Infinity Fabric.
ScaleUp: TypeAlias = (
    SwitchScaleUp | FullMeshScaleUp | HybridCubeMeshScaleUp | RingScaleUp | TorusScaleUp | ListScaleUp | NoneScaleUp
)


# Order of the computations of a pipeline stage.
# "1f1b": One forward, one backward. Stage s of S first does S - 1 - s microbatches forward, and then alternates between
#   one forward and one backward (Narayanan et al., "PipeDream", SOSP 2019, with a flush after each iteration).
# "gpipe": All microbatches forward, then all backward (Huang et al., "GPipe", 2019).
Schedule: TypeAlias = Literal["1f1b", "gpipe"]


# Transport service of a queue pair (InfiniBand architecture).
Service: TypeAlias = ConnectionService | SharedReceiveService | EndToEndService | DatagramService


# Way of the packets of side channels.
# "beside": A delay and a rate.
# "fabric": A connection on the fabric.
SideRoute: TypeAlias = Literal["beside", "fabric"]


# Scaling of thresholds on ports of different rates.
# "by-rate": In proportion to the rate of the port, as in the HPCC configurations.
# "fixed": The same number of bytes on every port.
Thresholds: TypeAlias = Literal["by-rate", "fixed"]


# A named parameter set.
# "hpcc": Values that the HPCC authors used for TIMELY: thresholds of the paper, steps that grow with the line rate.
# "paper": Values of the paper (SIGCOMM 2015, section 4 and 6): steps of 10 Mb/s at any line rate.
# "erpc": Values of eRPC (NSDI 2019): a slow average of the gradient, a high upper threshold.
# "near": Our values for the round-trip times within one data centre, or to its edge. The thresholds are a fifth of the
#   paper's, and the base of the gradient is 6 us.
TimelyPreset: TypeAlias = Literal["hpcc", "paper", "erpc", "near"]


Topology: TypeAlias = (
    StarTopology
    | DumbbellTopology
    | LeafSpineTopology
    | FatTreeTopology
    | CrossDcTopology
    | ClusterTopology
    | DragonflyTopology
    | RailTopology
    | TorusTopology
    | FullMeshTopology
    | JellyfishTopology
    | BcubeTopology
    | FileTopology
    | HpccTopology
    | SimaiTopology
    | HtsimTopology
    | LapsTopology
    | AstraTopology
    | PresetTopology
)


# Links between the ends of a dimension.
# "joined": Each dimension of three or more switches is a ring: a torus.
# "open": Each dimension is a chain: a mesh.
TorusEnds: TypeAlias = Literal["joined", "open"]


# A published model. Its numbers are in `crates/workload/src/architecture/models.csv`.
# "gpt-3-175b": GPT-3 with 175 billion parameters (Brown et al., "Language models are few-shot learners", 2020, table
#   2.1).
# "llama-3-8b": Llama 3 with 8 billion parameters (Grattafiori et al., "The Llama 3 herd of models", 2024, table 3).
# "llama-3-70b": Llama 3 with 70 billion parameters (same source).
# "llama-3-405b": Llama 3 with 405 billion parameters (same source).
# "llama-4-scout": Llama 4 Scout: 109 billion parameters, 17 billion of them active.
# "llama-4-maverick": Llama 4 Maverick: 400 billion parameters, 17 billion of them active.
# "qwen3-8b": Qwen3 with 8 billion parameters.
# "qwen3-32b": Qwen3 with 33 billion parameters.
# "qwen3-30b-a3b": Qwen3 with experts: 31 billion parameters, 3 billion of them active.
# "qwen3-235b-a22b": Qwen3 with experts: 235 billion parameters, 22 billion of them active.
# "qwen3-coder-480b": Qwen3-Coder: 480 billion parameters, 35 billion of them active.
# "deepseek-v3": DeepSeek-V3: 671 billion parameters, 37 billion of them active (DeepSeek-AI, 2024).
# "kimi-k2": Kimi K2: 1,026 billion parameters, 33 billion of them active.
# "gpt-oss-20b": gpt-oss-20b: 21 billion parameters, 4 billion of them active.
# "gpt-oss-120b": gpt-oss-120b: 117 billion parameters, 6 billion of them active.
# "glm-4.5-air": GLM-4.5-Air: 107 billion parameters, 13 billion of them active.
# "glm-4.5": GLM-4.5: 353 billion parameters, 34 billion of them active.
# "minimax-m2": MiniMax-M2: 229 billion parameters, 11 billion of them active.
# "mixtral-8x7b": Mixtral with 47 billion parameters, of which 13 billion are active for a token (Jiang et al., "Mixtral
#   of experts", 2024, table 1).
# "mixtral-8x22b": Mixtral with 141 billion parameters, 39 billion of them active.
# "nemotron-4-340b": Nemotron-4 with 340 billion parameters.
# "mistral-large-2": Mistral Large 2: 123 billion parameters.
# "gemma-3-27b": Gemma 3 with 27 billion parameters, its text part.
TransformerModel: TypeAlias = Literal[
    "gpt-3-175b",
    "llama-3-8b",
    "llama-3-70b",
    "llama-3-405b",
    "llama-4-scout",
    "llama-4-maverick",
    "qwen3-8b",
    "qwen3-32b",
    "qwen3-30b-a3b",
    "qwen3-235b-a22b",
    "qwen3-coder-480b",
    "deepseek-v3",
    "kimi-k2",
    "gpt-oss-20b",
    "gpt-oss-120b",
    "glm-4.5-air",
    "glm-4.5",
    "minimax-m2",
    "mixtral-8x7b",
    "mixtral-8x22b",
    "nemotron-4-340b",
    "mistral-large-2",
    "gemma-3-27b",
]


# Excess of a round-trip time over the average from which its acknowledgement releases nothing.
# "by_base": One base round-trip time: for fabrics, where queues are hardly longer.
# "by_queue": The excess of the average over the base, at least one base round-trip time: for real hosts, where queues
#   may be many base times long.
UdmpLate: TypeAlias = Literal["by_base", "by_queue"]


# Treatment of the rest of the first window that has not left when the receiver first responds.
# "lapses": The rest may no longer be used.
# "stays": The rest may still be used.
Unused: TypeAlias = Literal["lapses", "stays"]


# Verb with which messages are posted.
# "write": One-sided WRITE.
# "send": Two-sided SEND.
Verb: TypeAlias = Literal["write", "send"]


# Largest amount of data in flight of a queue pair.
# "unlimited": No bound.
Window: TypeAlias = Literal["unlimited"] | BdpWindow | PacketsWindow


# Threshold by which the window is computed, if only the window limits; the window is two of it.
# "paths": Threshold of the paths to the receiver (the authors' code): few bytes queue for near receivers.
# "fabric": Threshold of the longest path of the fabric: senders near a receiver get the same share of its links as
#   distant ones. An incast of 64 MB over rails then ends 0.2 % after the bound instead of 3.7 %. Under other loads with
#   short queues the mean completion times are up to 5 % longer.
WindowOf: TypeAlias = Literal["paths", "fabric"]


# Traffic that is reported together and carried by one scheme. Several workloads run at the same time.
Workload: TypeAlias = (
    PermutationWorkload
    | IncastWorkload
    | AllToAllWorkload
    | RingAllReduceWorkload
    | CollectiveWorkload
    | NcclWorkload
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
