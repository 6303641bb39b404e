//! Runs the example of the crate.

use pathweave_units::Time;

#[allow(dead_code, reason = "`main` prints")]
#[path = "../../examples/four_paths.rs"]
mod example;

/// 4,000,000 B are 977 packets of at most 4,178 B: 408 us at the 80 Gb/s of all four paths.
#[test]
fn the_slow_path_gets_less_where_it_is_noticed() {
    let send = |scheme| example::send(scheme).expect("the message arrives");
    let (blind, by_chance) = send("rps");
    for scheme in ["reps", "weave"] {
        let (time, packets) = send(scheme);
        assert!(packets.iter().sum::<u64>() >= 977, "{scheme}: {packets:?}");
        assert!(packets[2] * 2 < by_chance[2], "{scheme}: {packets:?}, and by chance {by_chance:?}");
        // The page of the crate has what the example prints.
        let line = example::line(scheme).expect("the message arrives");
        assert!(include_str!("../../README.md").contains(&line), "{line}");
        assert!(
            time > Time::ZERO + pathweave_units::Duration::from_us(408) && time < blind,
            "{scheme}: {time}"
        );
    }
}
