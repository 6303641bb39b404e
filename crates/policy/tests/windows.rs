//! Windows of loss recovery follow the path, unless they are configured.

use pathweave_policy::{AckPolicy, MOST_WINDOW_PACKETS, Recovery, schemes};
use pathweave_units::{Bytes, Duration};

#[test]
fn a_window_is_twice_what_the_path_holds_and_never_less_than_usual() {
    let timed = Recovery::Timed { reorder_packets: 0, window_packets: None };
    let of = |recovery: Recovery, path_packets| recovery.for_path(path_packets).window_packets();
    // 100 Gb/s over 12 us hold 37 packets of 4,096 B; over 1 ms 11,511 of 1,024 B and headers.
    assert_eq!([0, 37, 2_048].map(|packets| of(timed, packets)), [Some(4_096); 3]);
    assert_eq!(of(timed, 11_511), Some(23_040), "a multiple of 128");
    assert_eq!(of(timed, u64::MAX), Some(MOST_WINDOW_PACKETS));
    let set = timed.with_window_packets(512);
    assert_eq!((of(set, 11_511), set.given_window_packets()), (Some(512), Some(512)));
    let of_nics = Recovery::Timeouts { window_packets: None, exponent: None, alike: 7, retries: 14 };
    assert_eq!([37, 600].map(|packets| of(of_nics, packets)), [Some(1_024), Some(1_280)]);
    assert_eq!(of(Recovery::GoBackN, 11_511), None);
}

/// 10 Gb/s over 11 us hold 13,750 bytes, a quarter of which is less than a packet of 4,178.
#[test]
fn acknowledgements_report_a_quarter_of_what_a_path_holds() {
    let acks = AckPolicy::by_bytes(Bytes::new(16_384), Duration::from_us(10));
    let of = |bdp_bytes| acks.for_path(bdp_bytes).every_bytes.map(Bytes::get);
    assert_eq!([150_000, 65_536, 13_750, 0].map(of), [16_384, 16_384, 3_437, 1].map(Some));
    assert_eq!(acks.for_path(13_750).packets_an_ack(4_178), 1);
    let by_packets = AckPolicy::by_packets(4, Duration::from_us(10));
    assert_eq!(by_packets.for_path(13_750), by_packets);
}

#[test]
fn no_scheme_has_a_window_that_a_long_path_exceeds() {
    for info in schemes() {
        let recovery = (info.make)().recovery;
        if let Some(window) = recovery.for_path(100_000).window_packets() {
            assert!(window >= 200_000, "{}: {window} packets", info.name);
        }
    }
}

/// 1.024 us x 2^12 is the first to last 4 ms. An exponent that is set stays.
#[test]
fn the_timer_of_nics_outlasts_deep_queues_where_nothing_is_trimmed() {
    let exponent = |exponent: Option<u8>| {
        let recovery = Recovery::Timeouts { window_packets: None, exponent, alike: 7, retries: 14 };
        match recovery.without_trimming(Duration::from_ms(4)) {
            Recovery::Timeouts { exponent, .. } => exponent,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((exponent(None), exponent(Some(3))), (Some(12), Some(3)));
    let of = |ns| Recovery::timer_exponent(Duration::from_ns(ns));
    assert_eq!([0, 1_024, 1_025, 1 << 40].map(of), [0, 0, 1, 24]);
    assert_eq!(Recovery::GoBackN.without_trimming(Duration::from_ms(4)), Recovery::GoBackN);
}
