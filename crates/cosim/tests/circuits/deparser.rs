//! Compares the deparser circuit with `crates/wire`. A frame with any path, port, stamp and checksums must leave as
//! the frame that `emit` writes with the requested values.

use std::collections::VecDeque;

use pathweave_cosim::{Circuit, Model, Reader};
use pathweave_units::{PathId, Rng, Time};
use pathweave_wire::{Body, Control, Operation, Segment, emit};

use crate::frames::{Beat, ETHERNET, beats, frame, route, segment};
use crate::support;

const WORDS: (usize, usize) = (22, 19);
const LATENCY: usize = 15;

/// Input frame, values to be written, and expected output frame.
struct Case {
    goes_in: Vec<u8>,
    ours: bool,
    stamp: Option<(u16, u16, u64)>,
    comes_out: Vec<u8>,
}

fn stamped(segment: Segment, path: u16, now: u64) -> Segment {
    let mut body = segment.body;
    let at = Time::from_ps(now);
    match &mut body {
        Body::Data(data) => data.sent_at = at,
        Body::Control(Control::Probe { sent_at } | Control::Notice { sent_at, .. }) => *sent_at = at,
        _ => {}
    }
    Segment { path: PathId(path), body, ..segment }
}

fn case(rng: &mut Rng) -> Case {
    let longest = [8, 70, 300][rng.below(3) as usize];
    let segment = segment(rng, longest);
    let mut route = route(rng, &segment);
    let goes_in = frame(rng, &segment, &route);
    let (path, port, now) = (rng.next_u64() as u16, rng.next_u64() as u16, rng.next_u64());
    let tail: Vec<u8> =
        (0..if rng.below(3) == 0 { rng.below(70) } else { 0 }).map(|_| rng.next_u64() as u8).collect();
    let (ours, stamp) = [(false, false), (true, false), (true, true), (true, true)][rng.below(4) as usize];
    let mut comes_out = if ours && stamp {
        route.src_port = port;
        let segment = stamped(segment, path, now);
        let len = match &segment.body {
            Body::Data(data) if data.op != Operation::ReadRequest => usize::from(data.len),
            Body::Rd(data) => data.len.into(),
            _ => 0,
        };
        let pad = usize::from(goes_in[43] >> 4 & 3);
        let end = goes_in.len() - 4 - pad;
        let mut out = vec![0; goes_in.len()];
        emit(&segment, &route, &goes_in[end - len..end], &mut out).expect("it fitted before");
        out
    } else {
        goes_in.clone()
    };
    let mut goes_in = goes_in;
    if ours {
        // The circuit overwrites these fields, so their content is random.
        goes_in[ETHERNET + 10..ETHERNET + 12].copy_from_slice(&[rng.next_u64() as u8; 2]);
        goes_in[ETHERNET + 26..ETHERNET + 28].copy_from_slice(&[rng.next_u64() as u8; 2]);
        let end = goes_in.len() - 4;
        goes_in[end..].fill(rng.next_u64() as u8);
    }
    goes_in.extend(&tail);
    comes_out.extend(&tail);
    Case { goes_in, ours, stamp: stamp.then_some((path, port, now)), comes_out }
}

fn random(model: &mut Model, rng: &mut Rng, count: usize) {
    let (mut stimuli, mut due) = (Vec::new(), VecDeque::new());
    for _ in 0..count {
        let case = case(rng);
        let pauses = rng.below(3) == 0;
        let fill = rng.next_u64() as u8;
        for (beat, wants) in beats(&case.goes_in, fill).into_iter().zip(beats(&case.comes_out, fill)) {
            while pauses && rng.below(3) == 0 {
                let mut words: Vec<u32> = (0..WORDS.0).map(|_| rng.next_u64() as u32).collect();
                words[0] = 0;
                stimuli.push(words);
            }
            // The side data of a frame is read in its first beat.
            let first = due.back().is_none_or(|(_, beat): &(usize, Beat)| beat.last);
            let any = (rng.next_u64() as u16, rng.next_u64() as u16, rng.next_u64());
            let (path, port, now) = case.stamp.filter(|_| first).unwrap_or(any);
            let kind = u32::from(case.ours) | u32::from(case.stamp.is_some()) << 1;
            let kind = if first { kind } else { rng.below(4) };
            let mut words = vec![
                2 | u32::from(beat.last) << 2 | kind << 3,
                beat.keep() as u32,
                (beat.keep() >> 32) as u32,
            ];
            words.extend(beat.words());
            words.extend([u32::from(path) | u32::from(port) << 16, now as u32, (now >> 32) as u32]);
            stimuli.push(words);
            due.push_back((stimuli.len() - 1 + LATENCY, wants));
        }
    }
    stimuli.extend(vec![vec![0; WORDS.0]; LATENCY + 1]);
    for (clock, response) in model.run(&stimuli).iter().enumerate() {
        let mut reader = Reader::new(response);
        let (valid, last) = (reader.flag(), reader.flag());
        reader.take(30);
        let keep = reader.take(64);
        let found = valid.then(|| Beat {
            bytes: std::array::from_fn(|_| reader.take(8) as u8),
            len: 64 - keep.leading_zeros() as usize,
            last,
        });
        let is_due = due.front().is_some_and(|(at, _)| *at == clock);
        let wants = if is_due { due.pop_front() } else { None };
        assert_eq!(found, wants.map(|(_, beat)| beat), "clock {clock}");
    }
    assert!(due.is_empty());
}

fn bench() -> Option<Model> {
    let mut model = support::build(&Circuit { bench: "deparser", parameters: &[], words: WORDS })?;
    let mut reset = vec![0; WORDS.0];
    reset[0] = 1;
    model.run(&vec![reset; LATENCY + 2]);
    Some(model)
}

#[test]
fn frames_leave_as_the_wire_crate_emits_them() {
    let Some(mut model) = bench() else { return };
    random(&mut model, &mut Rng::for_component(1, "cosim-deparser", 0), 3_000);
}

/// Runs `COSIM_OPERATIONS` frames. Default: ten million.
#[test]
#[ignore = "an hour: `make hardware-test`"]
fn ten_million_frames_leave_as_the_wire_crate_emits_them() {
    let operations = support::operations();
    let Some(mut model) = bench() else { return };
    let mut rng = Rng::for_component(2, "cosim-deparser", 0);
    for done in 0..operations / 1_000 {
        random(&mut model, &mut rng, 1_000);
        support::progress(done * 1_000, (done + 1) * 1_000);
    }
    println!("{operations} frames, no difference");
}
