//! Policies that the program supplies, for example an experiment outside this workspace. The crate only calls them.

use alloc::boxed::Box;
use core::fmt;

use pathweave_units::Rng;

use crate::fluid::{AsFluid, ControlModel, Fluid};
use crate::{Adapt, MarkUse, Policy, PolicyEnv};

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

/// Defines the types by which a program supplies parts of one kind: the trait of its objects, the factory as part of a
/// configuration, and the object of one queue pair, to which all calls go.
macro_rules! supplied {
    ($kind:literal, $trait:ident by $make:ident: $program:ident, $factory:ident, $external:ident, $methods:ident) => {
        #[doc = concat!("A ", $kind, " of the program. Everything that implements [`", stringify!($trait), "`] and can be cloned and \
                        sent to another thread is one.")]
        pub trait $program: $trait + core::fmt::Debug + Send {
            /// Returns a copy with a state of its own.
            fn boxed_clone(&self) -> alloc::boxed::Box<dyn $program>;
        }

        impl<P: $trait + core::fmt::Debug + Clone + Send + 'static> $program for P {
            fn boxed_clone(&self) -> alloc::boxed::Box<dyn $program> {
                alloc::boxed::Box::new(self.clone())
            }
        }

        #[doc = concat!("A factory of a program's ", $kind, ", as part of a configuration. Two are equal if they are the same instance.")]
        #[derive(Clone, Debug)]
        pub struct $factory(alloc::sync::Arc<dyn $make>);

        impl $factory {
            /// Wraps `factory`.
            pub fn new(factory: alloc::sync::Arc<dyn $make>) -> Self {
                $factory(factory)
            }
            /// Returns the name in results.
            pub fn name(&self) -> &str {
                self.0.name()
            }
            /// Returns no error: the crate knows no parameter of the program's.
            pub fn validate(&self) -> Result<(), $crate::ConfigError> {
                Ok(())
            }
        }

        impl PartialEq for $factory {
            fn eq(&self, other: &Self) -> bool {
                alloc::sync::Arc::ptr_eq(&self.0, &other.0)
            }
        }

        #[doc = concat!("A queue pair's ", $kind, " that a [`", stringify!($factory), "`] has created.")]
        #[derive(Debug)]
        pub struct $external(alloc::boxed::Box<dyn $program>);

        impl Clone for $external {
            fn clone(&self) -> Self {
                $external(self.0.boxed_clone())
            }
        }

        impl $trait for $external {
            $crate::forwards!({ 0 } $methods);
        }
    };
}
pub(crate) use supplied;

supplied!("policy", Policy by MakePolicy: ProgramPolicy, PolicyFactory, ExternalPolicy, policy);

impl PolicyFactory {
    /// Builds the policy of one direction of one queue pair.
    pub fn build(&self, env: &PolicyEnv, rng: &mut Rng) -> ExternalPolicy {
        ExternalPolicy(self.0.make(env, rng))
    }
}

impl Adapt for PolicyFactory {
    /// A program may use marks.
    fn marks(&self) -> MarkUse {
        MarkUse::BesideDelay
    }
}

impl AsFluid for PolicyFactory {
    fn as_fluid(&self) -> Fluid {
        self.0.fluid()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_alike;
    use crate::{PolicyConfig, schemes};
    use alloc::sync::Arc;

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

    #[test]
    fn supplied_policies_are_called_as_built_in_ones() {
        for info in schemes() {
            let own = (info.make)().policy;
            let supplied = PolicyConfig::Supplied(PolicyFactory::new(Arc::new(Own(own.clone()))));
            assert_eq!(supplied.as_fluid(), own.as_fluid());
            assert_alike(info.name, &supplied, &own);
        }
    }
}
