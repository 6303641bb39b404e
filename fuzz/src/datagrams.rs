//! Input of a datagram endpoint from UDP and TCP, after its protection was removed. A member of the cluster may send
//! anything.

use pathweave_datapath::rdm::stream::{PREAMBLE_LEN, Preamble, record};
use pathweave_policy::find_scheme;
use pathweave_policy::{AnyPolicy, DatagramConfig, MeasuredSection, PolicyEnv};
use pathweave_transport::rd::{PeerId, RdConfig, RdQp, SideMessage};
use pathweave_transport::{FreePorts, Transport};
use pathweave_units::{Duration, HostId, QpNum, Rate, Rng, Time};
use pathweave_wire::{Datagram, Framing, SideFrame};

const RTT: Duration = Duration::from_us(10);

fn queue_pair(own: u32, peer: PeerId) -> RdQp<AnyPolicy> {
    let env = PolicyEnv {
        line_rate: Rate::from_gbps(100),
        base_rtt: RTT,
        mtu_wire_bytes: 1_100,
        mtu_payload_bytes: 1_000,
        paths: 4,
        measured: MeasuredSection::with_rtt(RTT),
        edge: None,
    };
    let scheme = (find_scheme("erd-dcqcn").expect("a scheme").make)();
    let (policy, control) = scheme.datagram_policy(&env, &mut Rng::for_component(1, "fuzz", 1));
    let mut qp = RdQp::new(RdConfig {
        num: QpNum(own),
        policy,
        control,
        behaviour: DatagramConfig { window_packets: 256, ..DatagramConfig::default() },
        mtu_payload: 1_000,
        framing: Framing::Pathweave,
        paths: env.paths,
        nic_ports: 1,
        seed: 1,
        rtt: RTT,
        nack_delay: Duration::ZERO,
    });
    qp.add_peer(Time::ZERO, peer, RTT);
    qp
}

/// Feeds a stream of a TCP connection, in records or not, to a queue pair that has sent messages itself and has no
/// space for some received ones. Each record is a datagram if it parses as one, and side-channel messages otherwise.
pub fn datagrams(data: &[u8]) {
    let peer = PeerId { host: HostId(1), qp: QpNum(2) };
    let mut qp = queue_pair(1, peer);
    for wr_id in 0..3 {
        qp.post(Time::ZERO, peer, wr_id, 2_500).expect("room");
    }
    let mut rest = data;
    if let Ok(Some(preamble)) = Preamble::parse(rest) {
        assert_eq!(preamble.encode(), rest[..PREAMBLE_LEN]);
        rest = &rest[PREAMBLE_LEN..];
    }
    let mut now = Time::ZERO;
    while let Ok(Some(range)) = record(rest) {
        let content = &rest[range.clone()];
        now = now.saturating_add(RTT * 4);
        match Datagram::parse(content) {
            Ok(datagram) => {
                let segment = datagram.segment(qp.expected_psn(peer).expect("known"));
                let offer = qp.judge(now, peer.host, &segment, data.len() % 2 == 1);
                // The queue pair has no space for messages of some lengths.
                if let Some(offer) = offer
                    && offer.total().is_some_and(|bytes| bytes % 3 == 0)
                {
                    assert!(qp.refuse(now, offer) && qp.waiting(peer).is_some());
                } else if let Some(offer) = offer {
                    let place = qp.take(now, offer);
                    assert_eq!(usize::from(place.len), datagram.payload().len());
                }
            }
            Err(_) => {
                let mut content = content;
                while let Ok((frame, len)) = SideFrame::parse(content) {
                    let message: SideMessage = frame.to_owned();
                    qp.on_side(now, peer.host, &message);
                    content = &content[len..];
                }
            }
        }
        if now.as_ps().is_multiple_of((RTT * 16).as_ps()) {
            qp.release(now, peer);
            qp.remind(now, peer, 0, 8);
        }
        qp.on_timer(now);
        while qp.poll_event().is_some() {}
        while let Some((_, message)) = qp.poll_side() {
            let mut bytes = vec![0; message.encoded_len()];
            assert_eq!(message.emit(&mut bytes), bytes.len());
        }
        while qp.poll_transmit(now, FreePorts::OPEN).is_some() {}
        rest = &rest[range.end..];
    }
}
