//! Waits: the time of the slowest flows, divided by reason and link.

use crate::names::named_enum;

named_enum! {
    /// Reason for which a flow spends time.
    #[derive(Default)]
    WaitKind {
        /// Packets of the flow crossed links.
        #[default] Travel = "travel",
        /// The flow could send, and its own port was busy.
        Port = "port",
        /// The sender's own port was down.
        Down = "down",
        /// Packets of the flow were queued at the link behind others.
        Queue = "queue",
        /// Packets of the flow were kept at the link by PFC.
        Pause = "pause",
        /// Congestion control held the flow back while the link, which is on its path, was busy.
        Full = "full",
        /// Congestion control held the flow back while no link on its path was busy.
        Control = "control",
        /// The flow waited for credit of the receiver while no link on its path was busy.
        Credit = "credit",
        /// The flow had as many packets beyond the first gap as the receiver tracks.
        Window = "window",
        /// No packet of the flow was in flight: it waited for a timer, or for the detection of a loss.
        Silence = "silence",
        /// The receiver had no receive posted.
        Receiver = "receiver",
    }
}

/// A part of the time of a flow with its reason, from samples. The parts of a flow add up to its time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WaitRecord {
    /// Number of the flow: [`FlowRecord::flow`](crate::FlowRecord::flow).
    pub flow: u32,
    /// Workload group, an index into [`RunInfo::groups`](crate::RunInfo::groups).
    pub group: u16,
    /// Sending host.
    pub src_host: u32,
    /// Receiving host.
    pub dst_host: u32,
    /// Bytes of the message.
    pub size_bytes: u64,
    /// Time at which the flow was posted.
    pub start_ps: u64,
    /// Duration of the flow; until the end of the run if it did not finish.
    pub flow_ps: u64,
    /// Duration of the flow on an idle network.
    pub ideal_fct_ps: u64,
    /// Duration until the last acknowledgement on an idle network, if the flow has acknowledgements.
    pub ideal_acked_ps: Option<u64>,
    /// Data packets sent, retransmissions included.
    pub sent_packets: u32,
    /// Data packets retransmitted.
    pub retransmitted_packets: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Reason for this part.
    pub kind: WaitKind,
    /// Link at which the time was spent.
    pub link: Option<u32>,
    /// Duration of this part.
    pub time_ps: u64,
    /// Largest number of hosts with data waiting for the link, over the samples of the run.
    pub link_senders: Option<u32>,
    /// Group with the most packets on the link over the run.
    pub link_group: Option<u16>,
    /// Share of that group.
    pub link_group_share: Option<f64>,
}

impl WaitRecord {
    /// Returns the duration of the flow over that on an idle network.
    pub fn slowdown(&self) -> f64 {
        self.flow_ps as f64 / self.ideal_fct_ps.max(1) as f64
    }
}
