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
