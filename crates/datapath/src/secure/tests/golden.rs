//! A handshake and packets, byte for byte, against values that `golden.py` beside this file computes from
//! docs/wire.md without any of our code.

use aws_lc_rs::digest::{SHA256, digest};
use pathweave_units::Time;

use super::super::*;
use super::pair::{client, frame, hello};

/// Every draw is filled with its number, counting from 1.
struct Counting(u8);

impl SecureRandom for Counting {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError> {
        self.0 += 1;
        out.fill(self.0);
        Ok(())
    }
}

const FIRST_SHA256: &str = "251cd64b8a4fd28793c34b143b63e8a401fe1cec01279dd1d321f6db7669b454";
const RETRY: &str = "700201000101010101010101000000000000000000000000000f42400e1ce981eb4382e94b6a3843812c26d2d48c271345c46f586ebaa45b58e27cd5";
const REQUEST_SHA256: &str = "635e8c268004efd310b832316dcfe2c76534d6e8328224e561e902eb962f041d";
const ACCEPT: &str = "700301000101010101010101ce8d3ad1ccb633ec7b70c17814a5c76ecd029685050d344745ba05870e587d59f055a6c910353c8cc62f51acf8904ff2478166a53a99de1204c314bcfd3c3959186f93479d8e4fa872a3f395cc5af407dfdb5a7f596b62";
const CONFIRM: &str = "700401000101010101010101b0575f55312084d1425abf6f55863f5a";
const THERE: &str = "71000003000000ca000000002b466899b622991edb085cf419d74894a8e6ed46eb";
const BACK: &str = "71000005000000650000000005da1dc344c077b59be61e77132b4d1d51f9af3810f25f2c";
const AFTER: &str = "71100003000000ca00000001f7555e2e50e5ab79012562795f3de934507d3a25ac687043";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn bytes_are_those_of_the_document() {
    let now = Time::from_us(1_000);
    let key = ClusterKey::from_bytes(core::array::from_fn(|i| i as u8));
    let mut responder =
        Responder::new(key.clone(), ResponderConfig::default(), Box::new(Counting(0))).unwrap();
    let rotation = Rotation { packets: 1, ..Rotation::default() };
    let config = HandshakeConfig::default();
    let mut initiator = Initiator::new(now, &key, hello(1, 101), config, rotation, &mut Counting(0)).unwrap();

    let first = initiator.poll_transmit().unwrap();
    assert_eq!(hex(digest(&SHA256, &first).as_ref()), FIRST_SHA256);
    responder.handle(now, client(), &first);
    let retry = responder.poll_transmit().unwrap().1;
    assert_eq!(hex(&retry), RETRY);
    initiator.handle(now, &retry);
    let request = initiator.poll_transmit().unwrap();
    assert_eq!(hex(digest(&SHA256, &request).as_ref()), REQUEST_SHA256);
    responder.handle(now, client(), &request);
    let Some(ResponderEvent::Request { id, .. }) = responder.poll_event() else { panic!("a request") };
    responder.accept(now, id, hello(2, 202)).unwrap();
    let accept = responder.poll_transmit().unwrap().1;
    assert_eq!(hex(&accept), ACCEPT);
    initiator.handle(now, &accept);
    let confirm = initiator.poll_transmit().unwrap();
    assert_eq!(hex(&confirm), CONFIRM);
    responder.handle(now, client(), &confirm);

    let Some(InitiatorEvent::Established(mut near)) = initiator.poll_event() else { panic!("established") };
    let Some(ResponderEvent::Established { established: mut far, .. }) = responder.poll_event() else {
        panic!("established")
    };
    assert_eq!(hex(&frame(&mut near.session, 3, b"there")), THERE);
    assert_eq!(hex(&frame(&mut far.session, 5, b"and back")), BACK);
    assert_eq!(hex(&frame(&mut near.session, 3, b"new keys")), AFTER);
}
