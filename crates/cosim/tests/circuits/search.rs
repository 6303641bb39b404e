//! Tests the search table circuit: an address finds its destination from the clock after its entry on, until another
//! entry replaces it.

use std::collections::VecDeque;

use pathweave_cosim::{Circuit, Model};
use pathweave_units::Rng;

use crate::support;

const WORDS: (usize, usize) = (4, 3);
const SEARCH: u32 = 4;
const DESTINATION: u32 = 4;
const LATENCY: usize = 2;

/// Returns the slot of an address in a way of the table.
fn place(address: u32, way: usize) -> usize {
    (0..32).fold(0, |place, i| {
        let bit = if way == 0 { i % SEARCH } else { (3 * i + i / SEARCH) % SEARCH };
        place ^ ((address >> i & 1) << bit) as usize
    })
}

fn random(
    model: &mut Model,
    table: &mut [[Option<(u32, u32)>; 1 << SEARCH]; 2],
    rng: &mut Rng,
    operations: usize,
) {
    let (mut stimuli, mut due) = (Vec::new(), VecDeque::new());
    for clock in 0..operations {
        let address = |rng: &mut Rng| rng.below(40) * 0x0101_0133;
        let (writes, looks) = (rng.below(4) == 0, rng.below(4) > 0);
        let (way, up) = (rng.below(2) as usize, rng.below(4) > 0);
        let (entered, asked, destination) = (address(rng), address(rng), rng.below(1 << DESTINATION));
        if looks {
            let found = (0..2).find_map(|way| table[way][place(asked, way)].filter(|(key, _)| *key == asked));
            due.push_back((clock + LATENCY, found.map(|(_, destination)| destination)));
        }
        if writes {
            table[way][place(entered, way)] = up.then_some((entered, destination));
        }
        let flags = u32::from(writes) << 1 | (way as u32) << 2 | u32::from(up) << 3 | u32::from(looks) << 4;
        stimuli.push(vec![flags | destination << 16, entered, asked, 0]);
    }
    stimuli.extend(vec![vec![0; WORDS.0]; LATENCY]);
    for (clock, response) in model.run(&stimuli).iter().enumerate() {
        let (valid, found) = (response[0] & 1 == 1, response[0] >> 1 & 1 == 1);
        let told = valid.then(|| found.then_some(response[0] >> 16));
        let is_due = due.front().is_some_and(|(at, _)| *at == clock);
        let expected = if is_due { due.pop_front().map(|(_, found)| found) } else { None };
        assert_eq!(told, expected, "clock {clock}");
    }
}

#[test]
fn addresses_are_found_where_the_host_has_entered_them() {
    let parameters = [("SEARCH", SEARCH), ("DESTINATION", DESTINATION)];
    let Some(mut model) = support::build(&Circuit { bench: "search", parameters: &parameters, words: WORDS })
    else {
        return;
    };
    let mut stimuli = vec![vec![1, 0, 0, 0]; 3];
    stimuli.extend(vec![vec![0; WORDS.0]; 1 << SEARCH]);
    model.run(&stimuli);
    let mut table = [[None; 1 << SEARCH]; 2];
    let mut rng = Rng::for_component(1, "cosim-search", 0);
    random(&mut model, &mut table, &mut rng, 40_000);
}
