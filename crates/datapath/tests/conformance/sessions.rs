//! Sessions of the simulated side: created by the handshake, from a seed, with packets protected as in the datapath.

use pathweave_datapath::secure::{
    ClusterKey, Features, HandshakeConfig, Hello, Initiator, InitiatorEvent, Protection, RandomError,
    Responder, ResponderConfig, ResponderEvent, Rotation, SecureRandom, Session, SessionId, TransportType,
};
use pathweave_units::{HostId, PathId, QpNum, Rng, Time};
use pathweave_wire::{Body, Control, Segment, datagram_crc};

use crate::world::{MTU, PATHS, Setup};

/// Length of the CRC behind an unprotected packet, in bytes.
const CRC_LEN: usize = 4;

struct Seeded(Rng);

impl SecureRandom for Seeded {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError> {
        out.fill_with(|| self.0.next_u64() as u8);
        Ok(())
    }
}

fn hello(protection: Protection, end: u32) -> Hello {
    Hello {
        protection,
        transport: TransportType::Rc,
        scheme: "any".into(),
        mtu_payload: MTU as u16,
        paths: PATHS,
        nic_ports: 1,
        host: HostId(end),
        qp: QpNum(end + 1),
        session: SessionId(end + 1),
        features: Features::NONE,
        required: Features::NONE,
        private_data: vec![],
        addresses: vec![],
    }
}

/// Creates both ends of the `number`th connection of a run.
pub(crate) fn sessions(setup: &Setup, number: u64, now: Time) -> [Session; 2] {
    let random = |end| Seeded(Rng::for_component(setup.seed, "handshake", number * 2 + end));
    let key = ClusterKey::from_bytes([7; 32]);
    let rotation = Rotation { packets: setup.packets_a_key, ..Rotation::default() };
    let (protection, config) = (setup.protection, ResponderConfig { rotation, ..ResponderConfig::default() });
    let handshake = HandshakeConfig::default();
    let initiator = Initiator::new(now, &key, hello(protection, 0), handshake, rotation, &mut random(0));
    let responder = Responder::new(key.clone(), config, Box::new(random(1)));
    let (mut initiator, mut responder) = (initiator.expect("a hello"), responder.expect("as configured"));
    let (from, mut near) = ("10.0.0.1:1".parse().expect("an address"), None);
    loop {
        while let Some(datagram) = initiator.poll_transmit() {
            responder.handle(now, from, &datagram);
        }
        while let Some(event) = responder.poll_event() {
            match event {
                ResponderEvent::Request { id, .. } => {
                    responder.accept(now, id, hello(protection, 1)).expect("room");
                }
                ResponderEvent::Established { established, .. } => {
                    let near: Session = near.expect("it has confirmed");
                    return [near, established.session];
                }
                ResponderEvent::Abandoned { .. } => panic!("no time has passed"),
            }
        }
        while let Some((_, datagram)) = responder.poll_transmit() {
            initiator.handle(now, &datagram);
            match initiator.poll_event() {
                Some(InitiatorEvent::Established(established)) => near = Some(established.session),
                Some(InitiatorEvent::Failed(why)) => panic!("{why}"),
                None => {}
            }
        }
    }
}

/// Returns a datagram with `len` bytes of content, which `write` writes.
pub(crate) fn seal(
    session: &mut Session,
    sequence: PathId,
    len: usize,
    write: impl FnOnce(&mut [u8]),
) -> Vec<u8> {
    let head = session.header_len();
    let mut bytes = vec![0; head + len + session.tag_len()];
    write(&mut bytes[head..head + len]);
    if session.protection() == Protection::Insecure {
        let crc = datagram_crc(&bytes) ^ session.plain_tags().sends;
        bytes.extend(crc.to_le_bytes());
    } else {
        session.seal(sequence, &mut bytes).expect("a path that it has");
    }
    bytes
}

/// Returns the content of a datagram, or `None` if it does not belong to this session.
pub(crate) fn open<'a>(session: &mut Session, now: Time, bytes: &'a mut [u8]) -> Option<&'a [u8]> {
    if session.protection() == Protection::Insecure {
        let (content, crc) = bytes.split_last_chunk::<CRC_LEN>()?;
        return session.is_plain_packet(datagram_crc(content) ^ u32::from_le_bytes(*crc)).then_some(content);
    }
    let body = session.open(now, bytes).ok()?.body;
    Some(&bytes[body])
}

/// Returns the packet with `by` added to all of its PSNs, so that their 24 bits on the wire wrap earlier.
pub(crate) fn shifted(mut segment: Segment, by: u64) -> Segment {
    let shift = |psn: &mut u64| *psn = psn.wrapping_add(by);
    match &mut segment.body {
        Body::Data(data) => shift(&mut data.psn),
        Body::Rd(data) => shift(&mut data.psn),
        Body::Ack(ack) => {
            shift(&mut ack.cumulative);
            shift(&mut ack.psn);
        }
        Body::Nack(nack) => {
            shift(&mut nack.expected);
            shift(&mut nack.psn);
        }
        Body::Missing(missing) => shift(&mut missing.first),
        Body::Control(Control::Notice { first, last, .. }) => {
            shift(first);
            shift(last);
        }
        Body::Cnp | Body::Control(_) => {}
    }
    segment
}
