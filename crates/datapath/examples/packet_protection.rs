//! Cost of packet protection: nanoseconds per packet and per byte, for sealing and opening, and for a whole
//! handshake.
//!
//! `cargo run --release -p pathweave-datapath --example packet_protection`

use std::error::Error;
use std::hint::black_box;
use std::time::Instant;

use pathweave_datapath::secure::{
    ClusterKey, Established, Features, HandshakeConfig, Hello, Initiator, InitiatorEvent, OsRandom,
    Protection, Responder, ResponderConfig, ResponderEvent, Rotation, Session, SessionId, TransportType,
};
use pathweave_units::{HostId, PathId, QpNum, Time};

/// Packets of one batch: all are sealed, then all are opened, like the datagrams of a segmented send in a loop.
const BATCH: usize = 64;
/// Bytes sealed and opened in each round; the best round counts.
const BYTES: usize = 256 << 20;
const ROUNDS: usize = 7;

#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn main() -> Result<(), Box<dyn Error>> {
    println!("{:10} {:>7} {:>21} {:>21}", "", "", "seal", "open");
    println!("{:10} {:>7} {:>10} {:>10} {:>10} {:>10}", "mode", "bytes", "ns", "ns/byte", "ns", "ns/byte");
    for protection in [Protection::AuthOnly, Protection::Encrypt] {
        for len in [64, 1_400, 4_096, 9_000] {
            let (mut sender, mut receiver) = connect(protection)?;
            let mut best = (f64::INFINITY, f64::INFINITY);
            for _ in 0..ROUNDS {
                let round = measure(&mut sender.session, &mut receiver.session, len)?;
                best = (best.0.min(round.0), best.1.min(round.1));
            }
            let per_byte = |ns: f64| ns / len as f64;
            println!(
                "{:10} {len:7} {:10.1} {:10.4} {:10.1} {:10.4}",
                protection.name(),
                best.0,
                per_byte(best.0),
                best.1,
                per_byte(best.1)
            );
        }
    }
    let handshakes = 500;
    let started = Instant::now();
    for _ in 0..handshakes {
        black_box(connect(Protection::Encrypt)?);
    }
    let each = started.elapsed().as_nanos() as f64 / f64::from(handshakes);
    println!("handshake, both ends, with their set-up: {:.0} us", each / 1_000.0);
    Ok(())
}

/// Returns the nanoseconds per packet for sealing and for opening.
fn measure(sender: &mut Session, receiver: &mut Session, len: usize) -> Result<(f64, f64), Box<dyn Error>> {
    let stride = len + sender.overhead();
    let mut frames = vec![0x5a; stride * BATCH];
    let now = Time::from_us(1);
    let (mut sealing, mut opening) = (0, 0);
    let batches = (BYTES / (len + 1_000) / BATCH).max(1);
    for _ in 0..batches {
        let started = Instant::now();
        for (n, frame) in frames.chunks_exact_mut(stride).enumerate() {
            sender.seal(PathId((n % 8) as u16), frame)?;
        }
        let sealed = Instant::now();
        for frame in frames.chunks_exact_mut(stride) {
            black_box(receiver.open(now, frame)?);
        }
        sealing += (sealed - started).as_nanos();
        opening += sealed.elapsed().as_nanos();
        // An acknowledgement, so that keys can change as they do in a connection.
        let mut back = vec![0; receiver.overhead()];
        receiver.seal(PathId(0), &mut back)?;
        sender.open(now, &mut back)?;
    }
    let packets = (batches * BATCH) as f64;
    Ok((sealing as f64 / packets, opening as f64 / packets))
}

/// Performs a handshake in memory.
fn connect(protection: Protection) -> Result<(Box<Established>, Box<Established>), Box<dyn Error>> {
    let hello = |number| Hello {
        protection,
        transport: TransportType::Rc,
        scheme: "udmp".into(),
        mtu_payload: 9_000,
        paths: 8,
        nic_ports: 1,
        host: HostId(number),
        qp: QpNum(number),
        session: SessionId(number),
        features: Features::NONE,
        required: Features::NONE,
        private_data: vec![],
        addresses: vec![],
    };
    let (now, client) = (Time::from_us(1), "127.0.0.1:1".parse()?);
    let key = ClusterKey::generate(&mut OsRandom)?;
    let mut responder = Responder::new(key.clone(), ResponderConfig::default(), Box::new(OsRandom))?;
    let (config, rotation) = (HandshakeConfig::default(), Rotation::default());
    let mut initiator = Initiator::new(now, &key, hello(1), config, rotation, &mut OsRandom)?;
    // The responder completes last, with the Confirm.
    let (mut near, mut far) = (None, None);
    while far.is_none() {
        while let Some(datagram) = initiator.poll_transmit() {
            responder.handle(now, client, &datagram);
        }
        while let Some(event) = responder.poll_event() {
            match event {
                ResponderEvent::Request { id, .. } => responder.accept(now, id, hello(2))?,
                ResponderEvent::Established { established, .. } => far = Some(established),
                ResponderEvent::Abandoned { .. } => return Err("the handshake was abandoned".into()),
            }
        }
        while let Some((_, datagram)) = responder.poll_transmit() {
            initiator.handle(now, &datagram);
        }
        match initiator.poll_event() {
            Some(InitiatorEvent::Established(established)) => near = Some(established),
            Some(InitiatorEvent::Failed(error)) => return Err(error.into()),
            None => {}
        }
    }
    near.zip(far).ok_or_else(|| "the initiator is not through".into())
}
