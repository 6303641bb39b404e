//! The time of the slowest flows, divided by what their data waited for and at which link.

use crate::names::named_enum;

named_enum! {
    /// What a flow spends time on.
    #[derive(Default)]
    WaitKind {
        /// Its packets crossed links.
        #[default] Travel = "travel",
        /// It could send, and its own port was busy.
        Port = "port",
        /// Its own port was down.
        Down = "down",
        /// Its packets were queued at the link behind others.
        Queue = "queue",
        /// Its packets were kept at the link by PFC.
        Pause = "pause",
        /// Its congestion control held it back while the link, which it crosses, was busy.
        Full = "full",
        /// Its congestion control held it back while none of the links that it crosses was busy.
        Control = "control",
        /// It waited for credit of the receiver while none of the links that it crosses was busy.
        Credit = "credit",
        /// It had as many packets beyond the first gap as the receiver tracks.
        Window = "window",
        /// Nothing of it was under way: it waited for a timer, or to learn of a loss.
        Silence = "silence",
        /// The receiver had no receive posted.
        Receiver = "receiver",
    }
}

/// A part of the time of a flow: what it went to, as samples saw it. Those of a flow add up to its time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WaitRecord {
    /// The flow: [`FlowRecord::flow`](crate::FlowRecord::flow).
    pub flow: u32,
    /// Workload group, an index into [`RunInfo::groups`](crate::RunInfo::groups).
    pub group: u16,
    /// Sending host.
    pub src_host: u32,
    /// Receiving host.
    pub dst_host: u32,
    /// Bytes of the message.
    pub size_bytes: u64,
    /// How long the flow took; until the end of the run if it did not finish.
    pub flow_ps: u64,
    /// What it would take on an idle network.
    pub ideal_fct_ps: u64,
    /// Data packets sent, retransmissions included.
    pub sent_packets: u32,
    /// Data packets sent again.
    pub retransmitted_packets: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// What this part went to.
    pub kind: WaitKind,
    /// At which link.
    pub link: Option<u32>,
    /// How long.
    pub time_ps: u64,
    /// Most hosts of which data waited for the link at one sample of the run.
    pub link_senders: Option<u32>,
    /// The group that had most packets on the link over the run.
    pub link_group: Option<u16>,
    /// Its share of them.
    pub link_group_share: Option<f64>,
}

impl WaitRecord {
    /// Time of the flow over that on an idle network.
    pub fn slowdown(&self) -> f64 {
        self.flow_ps as f64 / self.ideal_fct_ps.max(1) as f64
    }
}
