//! Congestion controls that the program supplies, for example an experiment outside this workspace. The crate only
//! calls them.

use alloc::boxed::Box;
use core::fmt;

use super::CongestionControl;
use crate::fluid::{ControlModel, HasControlModel};
use crate::supplied::supplied;
use crate::{Adapt, MarkUse, PolicyEnv};

/// Factory of a program's congestion controls, one per queue pair.
pub trait MakeCc: fmt::Debug + Send + Sync {
    /// Returns the name in results.
    fn name(&self) -> &str;
    /// Creates the congestion control of a queue pair. All randomness comes from the [`PolicyCx`](crate::PolicyCx) of later calls, so
    /// that the same seed gives the same run.
    fn make(&self, env: &PolicyEnv) -> Box<dyn ProgramCc>;
    /// Returns the model for runs without packets. Default: a control by delay.
    fn control_model(&self) -> ControlModel {
        ControlModel::BY_DELAY
    }
}

supplied!("congestion control", CongestionControl by MakeCc: ProgramCc, CcFactory, ExternalCc, congestion_control);

impl ExternalCc {
    /// Creates the congestion control of one queue pair.
    pub fn new(factory: &CcFactory, env: &PolicyEnv) -> Self {
        ExternalCc(factory.0.make(env))
    }
}

impl Adapt for CcFactory {
    /// A program may use marks.
    fn marks(&self) -> MarkUse {
        MarkUse::BesideDelay
    }
}

impl HasControlModel for CcFactory {
    fn control(&self) -> ControlModel {
        self.0.control_model()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::CcConfig;
    use crate::picker::PickerConfig;
    use crate::testing::assert_alike;
    use crate::{PolicyConfig, SplitConfig};
    use alloc::sync::Arc;

    /// Supplies congestion controls of this crate.
    #[derive(Debug)]
    struct Own(CcConfig);

    impl MakeCc for Own {
        fn name(&self) -> &str {
            "own"
        }
        fn make(&self, env: &PolicyEnv) -> Box<dyn ProgramCc> {
            Box::new(self.0.build(env))
        }
    }

    fn policy(cc: CcConfig) -> PolicyConfig {
        PolicyConfig::Split(SplitConfig { cc, picker: PickerConfig::Rps })
    }

    #[test]
    fn supplied_controls_are_called_as_built_in_ones() {
        for (name, cc) in CcConfig::every() {
            let factory = CcFactory::new(Arc::new(Own(cc.clone())));
            assert_alike(name, &policy(CcConfig::Supplied(factory)), &policy(cc));
        }
    }

    /// No scenario can name a supplied congestion control: a scenario is self-contained.
    #[cfg(feature = "serde")]
    #[test]
    fn no_scenario_names_one() {
        let own = Own(CcConfig::Timely(crate::cc::TimelyConfig::default()));
        let supplied = CcConfig::Supplied(CcFactory::new(Arc::new(own)));
        assert!(serde_json::to_value(&supplied).is_err());
        assert!(serde_json::from_str::<CcConfig>("{\"kind\": \"supplied\"}").is_err());
        let schema = serde_json::to_string(&schemars::schema_for!(CcConfig)).expect("a schema is JSON");
        assert!(!schema.contains("upplied"), "{schema}");
    }
}
