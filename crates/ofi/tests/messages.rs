//! Messages between two endpoints of one process: order, matching, truncation, looking, cancelling.

mod client;

use client::*;

#[test]
fn messages_of_all_sizes_arrive_whole_and_in_the_order_of_sending() {
    let pair = Pair::new();
    let sizes = [0, 1, 64, 1_000, 1_024, 1_025, 16_383, 16_384, 16_385, 20_000, 1 << 20, 5_000_000, 3];
    for (round, expected) in [(0, "posted before"), (1, "posted after")] {
        let sent: Vec<Vec<u8>> = sizes.iter().map(|len| pattern(*len, *len as u64 + round)).collect();
        let mut got: Vec<Vec<u8>> = sizes.iter().map(|len| vec![0; *len]).collect();
        let mut post = |pair: &Pair| {
            for (index, into) in got.iter_mut().enumerate() {
                pair.far.trecv(pair.to_near, 7, 0, slot(into), index);
            }
        };
        if round == 0 {
            post(&pair);
        }
        for (index, bytes) in sent.iter().enumerate() {
            pair.near.tsend(pair.to_far, 7, bytes, 100 + index);
        }
        if round == 1 {
            assert!(pair.far.is_silent());
            post(&pair);
        }
        let mut lens = vec![usize::MAX; sizes.len()];
        for _ in &sizes {
            let entry = pair.far.done();
            assert_eq!(entry.flags, FI_TAGGED | FI_RECV);
            assert_eq!(entry.tag, 7);
            lens[entry.op_context as usize] = entry.len;
        }
        assert_eq!(lens, sizes, "{expected}");
        for (index, bytes) in sent.iter().enumerate() {
            assert!(got[index] == *bytes, "{expected}: message {index} of {} bytes differs", bytes.len());
        }
        for _ in &sizes {
            assert_eq!(pair.near.done().flags, FI_TAGGED | FI_SEND);
        }
    }
}
