//! Captures of every scheme: each frame parses, whichever scheme sent it.

use crate::support::{leaf_spine, lossy, permutation, spec};
use pathweave_policy::schemes;
use pathweave_sim::{Capture, CaptureFilter, Frames, NoMonitor, Simulation};
use pathweave_units::HostId;
use pathweave_wire::Packet;

/// Returns the frames of the packets in a capture.
fn frames(bytes: &[u8]) -> Vec<&[u8]> {
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if word(at) == 6 {
            found.push(&bytes[at + 28..at + 28 + word(at + 20)]);
        }
        at += word(at + 4);
    }
    found
}

fn written(capture: &Capture, kind: Frames) -> Vec<u8> {
    let mut out = Vec::new();
    capture
        .write(kind, |host: HostId| format!("host{}", host.0), &mut out)
        .expect("a capture of what was sent");
    out
}

#[test]
fn frames_of_every_scheme_parse() {
    for info in schemes() {
        let spec = lossy(spec(leaf_spine(), &permutation(16, 40_000), info.name));
        let mut capture = Capture::new(CaptureFilter::All, 100_000);
        let watched = Simulation::new(&spec)
            .expect("a spec that runs")
            .watched_by(Some(&mut capture))
            .run(&mut NoMonitor);
        let alone = Simulation::new(&spec).expect("a spec that runs").run(&mut NoMonitor);
        assert_eq!(watched.info.digest, alone.info.digest, "{}: watching changes the run", info.name);
        assert_eq!(capture.left_out(), 0);

        let ours = written(&capture, Frames::Pathweave);
        let ours = frames(&ours);
        assert_eq!(ours.len(), capture.len());
        for frame in ours {
            Packet::parse_ethernet(frame).unwrap_or_else(|why| panic!("{}: {why}", info.name));
        }
        let standard = written(&capture, Frames::Standard);
        for frame in frames(&standard) {
            match frame[42] {
                // Reliable connection, and congestion notification.
                0..=0x11 | 0x81 => {
                    let ip_len = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
                    assert_eq!(frame.len(), 14 + ip_len, "{}", info.name);
                }
                // Packets that RoCEv2 does not define have Pathweave's format.
                _ => drop(Packet::parse_ethernet(frame).unwrap_or_else(|why| panic!("{}: {why}", info.name))),
            }
        }
    }
}
