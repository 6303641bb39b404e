//! Sends 4 MB over four paths, of which the third has a fifth of the others' rate, and prints the share of packets of
//! each path. There is no socket, no clock and no thread: the loop below is the network, and time is a number.
#![allow(clippy::print_stdout, reason = "an example prints")]

use pathweave_policy::{PolicyEnv, find_scheme};
use pathweave_transport::{
    Buffer, Endpoint, EndpointConfig, Event, FreePorts, Op, QpConfig, RecvRequest, Transport, WorkRequest,
};
use pathweave_units::{Duration, HostId, Rate, Rng, Time};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for name in ["rps", "reps", "weave"] {
        println!("{}", line(name)?);
    }
    Ok(())
}

/// Returns what is printed of a scheme.
pub(crate) fn line(scheme: &str) -> Result<String, Box<dyn std::error::Error>> {
    let (time, packets) = send(scheme)?;
    let shares = packets.map(|path| format!("{:3} %", 100 * path / packets.iter().sum::<u64>()));
    Ok(format!("{scheme:5} {:5} us: {}", time.as_ns() / 1_000, shares.join(" ")))
}

/// Returns the time of the message, and the packets of each path.
pub(crate) fn send(scheme: &str) -> Result<(Time, [u64; 4]), Box<dyn std::error::Error>> {
    let (delay, mark_after) = (Duration::from_us(4), Duration::from_us(8));
    let rates = [25, 25, 5, 25].map(Rate::from_gbps);
    // A scheme is congestion control, path picker, loss recovery and acknowledgements.
    let scheme = (find_scheme(scheme).ok_or("there is no such scheme")?.make)();
    let env = PolicyEnv::new(Rate::from_gbps(100), delay + delay, 4);
    let mut ends = [0, 1].map(|host| Endpoint::new(EndpointConfig::new(HostId(host))));
    let qps = [0, 1].map(|host: usize| {
        let policy = scheme.policy.build(&env, &mut Rng::for_component(1, "qp", host as u64));
        let config = QpConfig::new(HostId(1 - host as u32), policy, &[]);
        ends[host].create_qp(Time::ZERO, QpConfig { recovery: scheme.recovery, acks: scheme.acks, ..config })
    });
    ends[0].connect(qps[0], qps[1])?;
    ends[1].connect(qps[1], qps[0])?;
    let len = 4_000_000;
    ends[1].post_recv(qps[1], RecvRequest { wr_id: 2, buffer: Buffer(0), len })?;
    ends[0].post(Time::ZERO, qps[0], WorkRequest { wr_id: 1, op: Op::Send, local: Buffer(0), len })?;

    let (mut now, mut nics, mut links) = (Time::ZERO, [Time::ZERO; 2], [[Time::ZERO; 4]; 2]);
    let (mut flying, mut packets) = (Vec::new(), [0; 4]);
    loop {
        for (from, end) in ends.iter_mut().enumerate() {
            while nics[from] <= now
                && let Some(packet) = end.poll_transmit(now, FreePorts::OPEN)
            {
                let (path, bytes) = (packet.segment.path.index(), u64::from(packet.wire_bytes));
                let link = &mut links[from][path];
                let marked = *link > now + mark_after;
                nics[from] = now + env.line_rate.time_for(bytes);
                *link = nics[from].max(*link) + rates[path].time_for(bytes);
                packets[path] += u64::from(from == 0);
                flying.push((*link + delay, from, packet.segment, marked));
            }
            while let Some(event) = end.poll_event() {
                if matches!(event, Event::Completion(done) if done.wr_id == 1) {
                    return Ok((now, packets));
                }
            }
        }
        let arrivals = flying.iter().map(|packet| packet.0);
        let wakes = nics.into_iter().chain(ends.iter().filter_map(Transport::poll_timer)).chain(arrivals);
        now = wakes.filter(|time| *time > now).min().ok_or("the message stays unfinished")?;
        ends.iter_mut().for_each(|end| end.on_timer(now));
        flying.sort_by_key(|packet| packet.0);
        let due = flying.partition_point(|packet| packet.0 <= now);
        for (_, from, segment, marked) in flying.drain(..due) {
            // A driver with memory copies the payload to where the answer says.
            let _place = ends[1 - from].on_packet(now, HostId(from as u32), &segment, marked);
        }
    }
}
