//! Parts of schemes that the program supplies are in the results, as no scenario can name them.

use std::sync::Arc;

use pathweave_policy::picker::{MakePicker, PickerConfig, PickerFactory, ProgramPicker};
use pathweave_policy::{PolicyConfig, PolicyEnv};
use pathweave_records::{Summary, SuppliedPart};
use pathweave_scenario::units::Rng;
use pathweave_scenario::{Changes, Loaded};
use pathweave_sim::NoMonitor;

/// Pickers of the scheme's own kind under another name.
#[derive(Debug)]
struct Own(PickerConfig);

impl MakePicker for Own {
    fn name(&self) -> &str {
        "RoundRobin"
    }
    fn make(&self, env: &PolicyEnv, rng: &mut Rng) -> Box<dyn ProgramPicker> {
        Box::new(self.0.build(env, rng))
    }
}

#[test]
fn the_picker_of_a_program_is_in_the_summary() {
    let text = "scheme = \"rps\"\ntopology = { kind = \"star\", hosts = 2 }\n[[workload]]\nkind = \"permutation\"\nsize = \"9KB\"\n";
    let loaded = Loaded::parse(text, "own.toml", "", &Changes::default());
    let mut spec = loaded.and_then(|loaded| loaded.prepare()).unwrap_or_else(|why| panic!("{why}")).spec;
    let supplied = |spec: &pathweave_sim::SimSpec| {
        let run = pathweave_scenario::run(spec, &mut NoMonitor).expect("it was tried");
        Summary::from_run(&run).run.supplied
    };
    assert_eq!(supplied(&spec), []);
    for named in &mut spec.schemes {
        let picker = PolicyConfig::picker_mut(&mut named.scheme.policy).expect("rps has a picker");
        *picker = PickerConfig::Supplied(PickerFactory::new(Arc::new(Own(picker.clone()))));
    }
    let own = SuppliedPart { part: "picker".to_owned(), name: "RoundRobin".to_owned() };
    assert_eq!(supplied(&spec), [own]);
}
