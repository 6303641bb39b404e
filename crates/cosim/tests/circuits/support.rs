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

/// How many operations a long test does: `COSIM_OPERATIONS`, ten million unless it says otherwise.
pub(crate) fn operations() -> usize {
    std::env::var("COSIM_OPERATIONS").map_or(10_000_000, |count| count.parse().expect("a number"))
}
