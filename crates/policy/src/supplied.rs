//! Policies that the program supplies, for example an experiment outside this workspace. The crate only calls them.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::fmt;

use pathweave_units::Rng;

use crate::fluid::{AsFluid, ControlModel, Fluid};
use crate::{Adapt, ConfigError, Policy, PolicyEnv};

/// Factory of a program's policies, one per queue pair.
pub trait MakePolicy: fmt::Debug + Send + Sync {
    /// Returns the name in results.
    fn name(&self) -> &str;
    /// Creates the policy of a queue pair. All randomness comes from `rng`, the queue pair's stream, so that the same
    /// seed gives the same run.
    fn make(&self, env: &PolicyEnv, rng: &mut Rng) -> Box<dyn ProgramPolicy>;
    /// Returns the model for runs without packets. Default: a control by delay, and packets spread at random.
    fn fluid(&self) -> Fluid {
        Fluid { spread: None, control: ControlModel::BY_DELAY }
    }
}

/// A policy of the program. Every [`Policy`] that can be cloned and sent to another thread implements it.
pub trait ProgramPolicy: Policy + fmt::Debug + Send {
    /// Returns a copy with a state of its own.
    fn boxed_clone(&self) -> Box<dyn ProgramPolicy>;
}

impl<P: Policy + fmt::Debug + Clone + Send + 'static> ProgramPolicy for P {
    fn boxed_clone(&self) -> Box<dyn ProgramPolicy> {
        Box::new(self.clone())
    }
}

/// A factory of policies, as part of a configuration. Two are equal if they are the same instance.
#[derive(Clone, Debug)]
pub struct PolicyFactory(Arc<dyn MakePolicy>);

impl PolicyFactory {
    /// Wraps `factory`.
    pub fn new(factory: Arc<dyn MakePolicy>) -> Self {
        PolicyFactory(factory)
    }
    /// Returns the name in results.
    pub fn name(&self) -> &str {
        self.0.name()
    }
    /// Returns no error: the crate knows no parameter of the program's.
    pub fn validate(&self) -> Result<(), ConfigError> {
        Ok(())
    }
    /// Builds the policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> ExternalPolicy {
        ExternalPolicy(self.0.make(env, rng))
    }
}

impl PartialEq for PolicyFactory {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Adapt for PolicyFactory {}

impl AsFluid for PolicyFactory {
    fn as_fluid(&self) -> Fluid {
        self.0.fluid()
    }
}

/// A queue pair's policy that a [`PolicyFactory`] has created.
#[derive(Debug)]
pub struct ExternalPolicy(Box<dyn ProgramPolicy>);

impl Clone for ExternalPolicy {
    fn clone(&self) -> Self {
        ExternalPolicy(self.0.boxed_clone())
    }
}

impl Policy for ExternalPolicy {
    crate::forwards!({ 0 } policy);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Scenario, random_operations};
    use crate::{PolicyConfig, schemes};

    /// Supplies policies of this crate.
    #[derive(Debug)]
    struct Own(PolicyConfig);

    impl MakePolicy for Own {
        fn name(&self) -> &str {
            "own"
        }
        fn make(&self, env: &PolicyEnv, rng: &mut Rng) -> Box<dyn ProgramPolicy> {
            Box::new(self.0.build(env, rng))
        }
        fn fluid(&self) -> Fluid {
            self.0.as_fluid()
        }
    }

    /// A policy behaves the same if it is supplied: every scenario of the test bench has the same result, and random
    /// operations break no invariant.
    #[test]
    fn supplied_parts_are_called_as_built_in_ones() {
        for info in schemes() {
            let own = (info.make)().policy;
            let supplied = PolicyConfig::Supplied(PolicyFactory::new(Arc::new(Own(own.clone()))));
            assert_eq!((supplied.validate(), supplied.as_fluid()), (Ok(()), own.as_fluid()));
            for (situation, scenario) in Scenario::all() {
                let outcome = |policy: &PolicyConfig| {
                    let report = scenario.run(|env, rng| policy.build(env, rng));
                    let sender = |sender: &crate::testing::SenderReport| {
                        (sender.sent.clone(), sender.retransmitted, sender.marked, sender.done_at)
                    };
                    report.senders.iter().map(sender).collect::<alloc::vec::Vec<_>>()
                };
                assert_eq!(outcome(&supplied), outcome(&own), "{}, {situation}", info.name);
            }
            for seed in 0..2 {
                random_operations(seed, 500, &Scenario::steady().env, |env, rng| supplied.build(env, rng));
            }
        }
    }
}
