//! Functions shared by the tests of circuits.

use pathweave_cosim::{Circuit, Error, Model};

/// Builds the simulation of a circuit. Returns `None` with a message without Verilator.
pub(crate) fn build(circuit: &Circuit<'_>) -> Option<Model> {
    match Model::build(circuit) {
        Ok(model) => Some(model),
        Err(error @ Error::NoVerilator) => {
            println!("SKIPPED: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Clocks without input until nothing has happened for a while, or for 30,000 clocks. Returns the stimuli, and
/// appends the output to `responses`.
pub(crate) fn until_quiet(
    model: &mut Model,
    responses: &mut Vec<Vec<u32>>,
    mut idle: impl FnMut() -> Vec<u32>,
    happens: impl Fn(&[u32]) -> bool,
) -> Vec<Vec<u32>> {
    const QUIET: usize = 300;
    let mut stimuli = Vec::new();
    for _ in 0..100 {
        let more: Vec<_> = (0..QUIET).map(|_| idle()).collect();
        let told = model.run(&more);
        let quiet = !told.iter().any(|response| happens(response));
        stimuli.extend(more);
        responses.extend(told);
        if quiet {
            break;
        }
    }
    stimuli
}

/// Prints the progress of a long test every hundred thousand operations.
pub(crate) fn progress(before: usize, now: usize) {
    const EACH: usize = 100_000;
    if now / EACH > before / EACH {
        println!("{now} operations so far, no difference");
    }
}

/// Returns the number of operations of a long test: `COSIM_OPERATIONS`, or ten million by default.
pub(crate) fn operations() -> usize {
    std::env::var("COSIM_OPERATIONS").map_or(10_000_000, |count| count.parse().expect("a number"))
}
