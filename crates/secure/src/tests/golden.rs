//! Handshake and packets compared byte for byte with values that `golden.py` in this folder computes from
//! docs/wire.md without any of this code.

use aws_lc_rs::digest::{SHA256, digest};
use pathweave_units::Time;

use super::super::*;
use super::pair::{client, frame, hello};

/// Random source that fills each request with its number, counted from 1.
struct Counting(u8);

impl SecureRandom for Counting {
    fn fill(&mut self, out: &mut [u8]) -> Result<(), RandomError> {
        self.0 += 1;
        out.fill(self.0);
        Ok(())
    }
}

const FIRST_SHA256: &str = "247dc4d94982b3421494732bd12f15f0224db9ab0bd99b979b9b4ccb83730ceb";
const RETRY: &str = "700202000101010101010101000000000000000000000000000f42400e1ce981eb4382e94b6a3843812c26d221bec51961a8602a20b436846431e028";
const REQUEST_SHA256: &str = "4ad911a8128ed23e447b9891cd0ea47be6e5ff1d5cafe231636f7545b8e33633";
const ACCEPT: &str = "700302000101010101010101ce8d3ad1ccb633ec7b70c17814a5c76ecd029685050d344745ba05870e587d59f055a6c910353c8cc62f51acf8904ff2478166a53a99de1204c314bcfd3c3a59186f93479d8e4fc144ddbf7f333ba92ce72405e29f0e26";
const CONFIRM: &str = "70040200010101010101010192ac9519c2ebccfc2c6e50f3dfb34b63";
const THERE: &str = "71000003000000ca00000000b20ebcfd7aa6cd16e702e4407ff2b975b3c3bc9764";
const BACK: &str = "710000050000006500000000642d9b272cedd888c0465ed0481052062b33b64e736db57c";
const AFTER: &str = "71100003000000ca00000001444749857174844270eff2d12f42710cdb19db7d5fa5eb70";
/// Tags of unprotected packets to the responder and to the initiator.
const PLAIN_TAGS: [u32; 2] = [0xe3e8_28cc, 0x8b82_d125];

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
    let [there, back] = PLAIN_TAGS;
    assert_eq!(near.session.plain_tags(), CrcSecrets { sends: there, receives: back });
    assert_eq!(far.session.plain_tags(), CrcSecrets { sends: back, receives: there });
    assert_eq!(hex(&frame(&mut near.session, 3, b"there")), THERE);
    assert_eq!(hex(&frame(&mut far.session, 5, b"and back")), BACK);
    assert_eq!(hex(&frame(&mut near.session, 3, b"new keys")), AFTER);
}
