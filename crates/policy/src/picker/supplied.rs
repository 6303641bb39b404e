//! Pickers that the program supplies, for example written in another language or in a test. The crate only calls
//! them.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use pathweave_units::Rng;

use super::PathPicker;
use crate::PolicyEnv;

/// Factory of a program's pickers, one per queue pair.
pub trait MakePicker: fmt::Debug + Send + Sync {
    /// Returns the name in results.
    fn name(&self) -> &str;
    /// Creates the picker of a queue pair. All randomness comes from `rng`, the queue pair's stream, so that the same
    /// seed gives the same run.
    fn make(&self, env: &PolicyEnv, rng: &mut Rng) -> Box<dyn ProgramPicker>;
}

/// A picker of the program. Every [`PathPicker`] that can be cloned and sent to another thread implements it.
pub trait ProgramPicker: PathPicker + fmt::Debug + Send {
    /// Returns a copy with a state of its own.
    fn boxed_clone(&self) -> Box<dyn ProgramPicker>;
}

impl<P: PathPicker + fmt::Debug + Clone + Send + 'static> ProgramPicker for P {
    fn boxed_clone(&self) -> Box<dyn ProgramPicker> {
        Box::new(self.clone())
    }
}

/// A factory of pickers, as part of a configuration. Two are equal if they are the same instance.
#[derive(Clone, Debug)]
pub struct PickerFactory(Arc<dyn MakePicker>);

impl PickerFactory {
    /// Wraps `factory`.
    pub fn new(factory: Arc<dyn MakePicker>) -> Self {
        PickerFactory(factory)
    }
    /// Returns the name in results.
    pub fn name(&self) -> &str {
        self.0.name()
    }
    pub(super) fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> ExternalPicker {
        ExternalPicker(self.0.make(env, rng))
    }
}

impl PartialEq for PickerFactory {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A queue pair's picker that a [`PickerFactory`] has created.
#[derive(Debug)]
pub struct ExternalPicker(Box<dyn ProgramPicker>);

impl Clone for ExternalPicker {
    fn clone(&self) -> Self {
        ExternalPicker(self.0.boxed_clone())
    }
}

impl PathPicker for ExternalPicker {
    crate::forwards!({ 0 } path_picker);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{CcConfig, UnlimitedConfig};
    use crate::picker::PickerConfig;
    use crate::testing::{Scenario, random_operations};
    use crate::{PolicyConfig, SplitConfig};

    /// Supplies pickers of this crate.
    #[derive(Debug)]
    struct Own(PickerConfig);

    impl MakePicker for Own {
        fn name(&self) -> &str {
            "own"
        }
        fn make(&self, env: &PolicyEnv, rng: &mut Rng) -> Box<dyn ProgramPicker> {
            Box::new(self.0.build(env, rng))
        }
    }

    fn policy(picker: PickerConfig) -> PolicyConfig {
        PolicyConfig::Split(SplitConfig { cc: CcConfig::None(UnlimitedConfig::default()), picker })
    }

    /// A picker behaves the same if it is supplied: every scenario of the test bench has the same result, and random
    /// operations break no invariant.
    #[test]
    fn supplied_parts_are_called_as_built_in_ones() {
        for (name, picker) in PickerConfig::every() {
            let supply = PickerFactory::new(Arc::new(Own(picker.clone())));
            let (supplied, own) = (policy(PickerConfig::Supplied(supply)), policy(picker));
            assert_eq!(supplied.validate(), Ok(()));
            for (situation, scenario) in Scenario::all() {
                let outcome = |policy: &PolicyConfig| {
                    let report = scenario.run(|env, rng| policy.build(env, rng));
                    let sender = |sender: &crate::testing::SenderReport| {
                        (sender.sent.clone(), sender.retransmitted, sender.marked, sender.done_at)
                    };
                    report.senders.iter().map(sender).collect::<alloc::vec::Vec<_>>()
                };
                assert_eq!(outcome(&supplied), outcome(&own), "{name}, {situation}");
            }
            for seed in 0..4 {
                random_operations(seed, 1_000, &Scenario::steady().env, |env, rng| supplied.build(env, rng));
            }
        }
    }

    #[test]
    fn a_supply_is_itself_and_no_other() {
        let make = || PickerFactory::new(Arc::new(Own(PickerConfig::Rps)));
        let supply = make();
        assert_eq!(supply, supply.clone());
        assert_ne!(supply, make());
        assert_eq!(supply.name(), "own");
    }

    /// No scenario can name a supplied picker, and none can be written: a scenario is self-contained.
    #[cfg(feature = "serde")]
    #[test]
    fn no_scenario_names_one() {
        let supplied = PickerConfig::Supplied(PickerFactory::new(Arc::new(Own(PickerConfig::Rps))));
        assert!(serde_json::to_value(&supplied).is_err());
        assert!(serde_json::from_str::<PickerConfig>("\"supplied\"").is_err());
        let schema = serde_json::to_string(&schemars::schema_for!(PickerConfig)).expect("a schema is JSON");
        assert!(!schema.contains("upplied"), "{schema}");
    }
}
