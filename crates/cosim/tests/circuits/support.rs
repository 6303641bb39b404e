//! What tests of circuits share.

use pathweave_cosim::{Circuit, Error, Model};

/// The simulation of a circuit; `None`, and a word, where there is no Verilator.
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

/// Clocks without input until nothing has happened for a while, or for 30,000: gives the stimuli, and what comes out
/// is appended.
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

/// Says how far a long test has come, every hundred thousand operations.
pub(crate) fn progress(before: usize, now: usize) {
    const EACH: usize = 100_000;
    if now / EACH > before / EACH {
        println!("{now} operations so far, no difference");
    }
}

/// How many operations a long test does: `COSIM_OPERATIONS`, ten million unless it says otherwise.
pub(crate) fn operations() -> usize {
    std::env::var("COSIM_OPERATIONS").map_or(10_000_000, |count| count.parse().expect("a number"))
}
