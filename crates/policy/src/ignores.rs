//! What a policy has no use for, it says so. The methods of [`Policy`](crate::Policy) have no bodies of their own, so that
//! whoever wraps a policy cannot forget to hand one on: the wrapped policy would never hear of it, and nobody would notice.

/// Bodies that do nothing, for the methods of [`Policy`](crate::Policy) that are named; not for policies that wrap others.
/// `probes_overtake` answers that they do not.
///
/// ```text
/// impl Policy for Udmp {
///     pathweave_policy::ignores!(on_open, on_close);
///     ...
/// }
/// ```
#[macro_export]
macro_rules! ignores {
    ($($method:ident),+ $(,)?) => { $( $crate::ignores!(@ $method); )+ };
    (@ on_open) => {
        fn on_open(&mut self, _: $crate::units::Time, _: &$crate::Member, _: &mut $crate::PolicyCx<'_>) {}
    };
    (@ on_close) => {
        fn on_close(&mut self, _: &mut $crate::PolicyCx<'_>) {}
    };
    (@ on_probe_sent) => {
        fn on_probe_sent(
            &mut self,
            _: $crate::units::Time,
            _: $crate::units::PathId,
            _: &mut $crate::PolicyCx<'_>,
        ) {
        }
    };
    (@ on_copy_sent) => {
        fn on_copy_sent(
            &mut self,
            _: $crate::units::Time,
            _: u64,
            _: $crate::units::PathId,
            _: u32,
            _: &mut $crate::PolicyCx<'_>,
        ) {
        }
    };
    (@ on_notice_sent) => {
        fn on_notice_sent(
            &mut self,
            _: $crate::units::Time,
            _: $crate::units::PathId,
            _: &mut $crate::PolicyCx<'_>,
        ) {
        }
    };
    (@ probes_overtake) => {
        fn probes_overtake(&self) -> bool {
            false
        }
    };
}
