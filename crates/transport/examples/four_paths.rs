//! Sends a megabyte over four paths, of which one loses everything after 20 us: no socket, no clock, no thread.
#![allow(clippy::print_stdout, reason = "an example prints")]

use std::collections::VecDeque;

use pathweave_policy::{MeasuredSection, PolicyEnv, find_scheme};
use pathweave_transport::{
    Buffer, Endpoint, EndpointConfig, FreePorts, Op, QpConfig, RecvRequest, Transport, WorkRequest,
};
use pathweave_units::{Duration, HostId, Rate, Rng, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (line, delay, start) = (Rate::from_gbps(100), Duration::from_us(5), Time::ZERO);
    // A scheme is congestion control, path picker, loss recovery and acknowledgements.
    let scheme = (find_scheme("reps").ok_or("there is no such scheme")?.make)();
    let env = PolicyEnv {
        line_rate: line,
        base_rtt: delay + delay,
        mtu_wire_bytes: 4_178,
        mtu_payload_bytes: 4_096,
        paths: 4,
        measured: MeasuredSection { base_rtt: delay + delay, links: 2 },
        edge: None,
    };
    let mut ends = [0, 1].map(|host| Endpoint::new(EndpointConfig::new(HostId(host))));
    let qps = [0, 1].map(|host: u32| {
        let policy = scheme.policy.build(&env, &mut Rng::for_component(1, "qp", u64::from(host)));
        let config = QpConfig::new(HostId(1 - host), policy, &[]);
        let config = QpConfig { recovery: scheme.recovery, acks: scheme.acks, ..config };
        ends[host as usize].create_qp(start, config)
    });
    ends[0].connect(qps[0], qps[1])?;
    ends[1].connect(qps[1], qps[0])?;

    let message: Vec<u8> = (0..1_000_000u32).map(|i| (i % 251) as u8).collect();
    let (mut received, mut packets, mut lost) = (vec![0; message.len()], [0; 4], 0);
    let len = message.len() as u64;
    ends[1].post_recv(qps[1], RecvRequest { wr_id: 2, buffer: Buffer(0), len })?;
    ends[0].post(start, qps[0], WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len })?;

    let (mut now, mut on_the_way, mut free_at) = (start, VecDeque::new(), [start; 2]);
    while ends.iter().any(|end| end.items_in_progress() > 0) || !on_the_way.is_empty() {
        for (from, end) in ends.iter_mut().enumerate() {
            while let Some(event) = end.poll_event() {
                println!("{now}: host {from}: {event:?}");
            }
            // Payload does not pass through the endpoint: it only says where the bytes are.
            while free_at[from] <= now
                && let Some(packet) = end.poll_transmit(now, FreePorts::OPEN)
            {
                free_at[from] = now + line.time_for(u64::from(packet.wire_bytes));
                packets[packet.segment.path.index()] += usize::from(from == 0);
                let bytes = packet.payload.map(|p| message[p.offset as usize..][..p.len.into()].to_vec());
                match packet.segment.path.index() == 2 && now > start + Duration::from_us(20) {
                    true => lost += 1,
                    false => on_the_way.push_back((free_at[from] + delay, from, packet.segment, bytes)),
                }
            }
        }
        let busy = (0..2).filter(|&end| ends[end].has_ready_data() || ends[end].has_control());
        let next = busy.map(|end| free_at[end]).filter(|at| *at > now).chain(on_the_way.iter().map(|p| p.0));
        let Some(next) = next.chain(ends.iter().filter_map(Transport::poll_timer)).min() else { break };
        now = now.max(next);
        ends.iter_mut().for_each(|end| end.on_timer(now));
        while let Some(at) = on_the_way.iter().position(|packet| packet.0 <= now) {
            let Some((_, from, segment, bytes)) = on_the_way.remove(at) else { break };
            let place = ends[1 - from].on_packet(now, HostId(from as u32), &segment, false);
            if let (Some(place), Some(bytes)) = (place, bytes) {
                received[place.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
            }
        }
    }
    println!("{now}: packets by path {packets:?}, {lost} lost");
    assert_eq!(received, message);
    Ok(())
}
