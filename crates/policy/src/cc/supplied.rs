//! Congestion controls that the program supplies, for example an experiment outside this workspace. The crate only
//! calls them.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use super::CongestionControl;
use crate::fluid::{ControlModel, HasControlModel};
use crate::{Adapt, ConfigError, PolicyEnv};

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

/// A congestion control of the program. Every [`CongestionControl`] that can be cloned and sent to another thread
/// implements it.
pub trait ProgramCc: CongestionControl + fmt::Debug + Send {
    /// Returns a copy with a state of its own.
    fn boxed_clone(&self) -> Box<dyn ProgramCc>;
}

impl<C: CongestionControl + fmt::Debug + Clone + Send + 'static> ProgramCc for C {
    fn boxed_clone(&self) -> Box<dyn ProgramCc> {
        Box::new(self.clone())
    }
}

/// A factory of congestion controls, as part of a configuration. Two are equal if they are the same instance.
#[derive(Clone, Debug)]
pub struct CcFactory(Arc<dyn MakeCc>);

impl CcFactory {
    /// Wraps `factory`.
    pub fn new(factory: Arc<dyn MakeCc>) -> Self {
        CcFactory(factory)
    }
    /// Returns the name in results.
    pub fn name(&self) -> &str {
        self.0.name()
    }
    /// Returns no error: the crate knows no parameter of the program's.
    pub fn validate(&self) -> Result<(), ConfigError> {
        Ok(())
    }
}

impl PartialEq for CcFactory {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Adapt for CcFactory {}

impl HasControlModel for CcFactory {
    fn control(&self) -> ControlModel {
        self.0.control_model()
    }
}

/// A queue pair's congestion control that a [`CcFactory`] has created.
#[derive(Debug)]
pub struct ExternalCc(Box<dyn ProgramCc>);

impl ExternalCc {
    /// Creates the congestion control of one queue pair.
    pub fn new(factory: &CcFactory, env: &PolicyEnv) -> Self {
        ExternalCc(factory.0.make(env))
    }
}

impl Clone for ExternalCc {
    fn clone(&self) -> Self {
        ExternalCc(self.0.boxed_clone())
    }
}

impl CongestionControl for ExternalCc {
    crate::forwards!({ 0 } congestion_control);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::CcConfig;
    use crate::picker::PickerConfig;
    use crate::testing::{Scenario, random_operations};
    use crate::{PolicyConfig, SplitConfig};

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

    /// A congestion control behaves the same if it is supplied: every scenario of the test bench has the same
    /// result, and random operations break no invariant.
    #[test]
    fn supplied_parts_are_called_as_built_in_ones() {
        for (name, cc) in CcConfig::every() {
            let factory = CcFactory::new(Arc::new(Own(cc.clone())));
            let (supplied, own) = (policy(CcConfig::Supplied(factory)), policy(cc));
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
