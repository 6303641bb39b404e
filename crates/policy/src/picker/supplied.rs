//! Pickers that the program supplies, for example written in another language or in a test. The crate only calls
//! them.

use alloc::boxed::Box;
use core::fmt;

use pathweave_units::Rng;

use super::PathPicker;
use crate::PolicyEnv;
use crate::supplied::supplied;

/// Factory of a program's pickers, one per queue pair.
pub trait MakePicker: fmt::Debug + Send + Sync {
    /// Returns the name in results.
    fn name(&self) -> &str;
    /// Creates the picker of a queue pair. All randomness comes from `rng`, the queue pair's stream, so that the same
    /// seed gives the same run.
    fn make(&self, env: &PolicyEnv, rng: &mut Rng) -> Box<dyn ProgramPicker>;
}

supplied!("picker", PathPicker by MakePicker: ProgramPicker, PickerFactory, ExternalPicker, path_picker);

impl PickerFactory {
    pub(super) fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> ExternalPicker {
        ExternalPicker(self.0.make(env, rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::{CcConfig, UnlimitedConfig};
    use crate::picker::PickerConfig;
    use crate::testing::assert_alike;
    use crate::{PolicyConfig, SplitConfig};
    use alloc::sync::Arc;

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

    #[test]
    fn supplied_pickers_are_called_as_built_in_ones() {
        for (name, picker) in PickerConfig::every() {
            let supply = PickerFactory::new(Arc::new(Own(picker.clone())));
            assert_alike(name, &policy(PickerConfig::Supplied(supply)), &policy(picker));
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
