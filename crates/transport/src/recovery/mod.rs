//! Loss recovery, one file or folder for each kind. The sending half ([`LossRecovery`]) decides which packets count as
//! lost, the receiving half ([`Receiver`]) which packets are accepted. The choice of the next packet, feedback to the
//! policy and the count of timeouts are common to all kinds.
//!
//! A new kind is a module with a type `Sender` that implements [`LossRecovery`], and a line of `kinds!`.

mod clock;
pub(crate) mod contract;
mod go_back_n;
mod path_order;
mod receiver;
mod selective_repeat;
mod sleek;
mod timed;
mod timeouts;
mod transmissions;

use alloc::boxed::Box;
use alloc::vec::Vec;

use pathweave_policy::{FeedbackKind, Policy, Recovery};
use pathweave_units::{Duration, PathId, QpNum, Time};
use pathweave_wire::Nack;

use crate::common::EndpointShared;
use crate::config::RetransmissionConfig;
use crate::send::flight::{Flight, Slot};
pub(crate) use clock::{Clock, ClockValues};
use contract::{BlockedBy, Cx, Departed, LossRecovery, NextCheck, Probes, Setup, Trigger, Verdict};
pub(crate) use path_order::rings::{Rings, Suspect};
pub(crate) use receiver::{Arrival, Receiver, TrimmedHeader};
pub(crate) use timed::timing::Slack;

/// Declares the kinds of loss recovery. Each line names a variant, its state, the configurations that select it, and
/// the fields of the configuration that it uses. `$` stands for itself, for the macro that this one defines.
macro_rules! kinds {
    ($d:tt $($kind:ident($state:ty) of $module:ident: $($config:pat => $fields:expr),+;)*) => {
        /// Sending half.
        // `Timed` is the largest variant. The tag is encoded in the first byte of its state, and the state of the
        // others lies behind it.
        #[derive(Debug)]
        pub(crate) enum Sender { $($kind($state)),* }

        impl Sender {
            pub(crate) fn new(recovery: Recovery, setup: &Setup, common: &mut EndpointShared) -> Self {
                match recovery {
                    $($($config => Self::$kind($module::Sender::open($fields, setup, common).into()),)+)*
                }
            }
        }

        impl Receiver {
            pub(crate) fn new(recovery: Recovery) -> Self {
                let window_packets = receiver::window_packets(recovery);
                match recovery {
                    $($($config => $module::Sender::receiver($fields, window_packets),)+)*
                }
            }
        }

        /// Returns the configuration of the retransmission timer. `idle`: time of a full packet and its
        /// acknowledgement in an idle network, zero if unknown.
        pub(crate) fn timer(
            recovery: Recovery,
            configured: RetransmissionConfig,
            idle: Duration,
        ) -> RetransmissionConfig {
            match recovery {
                $($($config => $module::Sender::timer($fields, configured, idle),)+)*
            }
        }

        /// Calls the method of the kind.
        macro_rules! each {
            ($d on:expr, $d kind:ident => $d call:expr) => {
                match $d on {
                    $(Sender::$kind($d kind) => $d call,)*
                }
            };
        }
    };
}

kinds! { $
    GoBackN(go_back_n::Sender) of go_back_n:
        Recovery::GoBackN => None, Recovery::GoBackNRepeated { repeat } => Some(repeat);
    SelectiveRepeat(selective_repeat::Sender) of selective_repeat:
        Recovery::SelectiveRepeat { reorder_packets, .. } => reorder_packets;
    Timed(timed::Sender) of timed:
        Recovery::Timed { reorder_packets, .. } => reorder_packets;
    PathOrder(path_order::Sender) of path_order:
        Recovery::PathOrder { scope, rto, rto_min, rto_slack, .. }
            => path_order::Config { scope, rto, rto_min, rto_slack };
    Timeouts(Box<timeouts::Sender>) of timeouts:
        Recovery::Timeouts { exponent, alike, retries, .. } => timeouts::Config { exponent, alike, retries };
    Sleek(Box<sleek::Sender>) of sleek:
        Recovery::Sleek { reorder_windows, reorder_packets, probe_rtts, probe_again_rtts, .. }
            => sleek::Rule { reorder_windows, reorder_packets, probe_rtts, probe_again_rtts };
}

/// Forwards methods of [`LossRecovery`] to the kind.
macro_rules! forward {
    ($($(#[$attribute:meta])* fn $name:ident(&mut self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)*) => {
        impl Sender {
            $($(#[$attribute])*
            pub(crate) fn $name(&mut self $(, $argument: $type)*) $(-> $result)? {
                each!(self, kind => kind.$name($($argument),*))
            })*
        }
    };
}

/// Forwards methods of [`LossRecovery`] that only read the state.
macro_rules! forward_reads {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)*) => {
        impl Sender {
            $(#[inline]
            pub(crate) fn $name(&self $(, $argument: $type)*) $(-> $result)? {
                each!(self, kind => kind.$name($($argument),*))
            })*
        }
    };
}

/// Forwards methods of [`LossRecovery`] that take a context. Each kind gets a context of its own, so that the
/// compiler makes none for kinds that do not pass it on.
macro_rules! forward_with_context {
    ($($(#[$attribute:meta])* fn $name:ident(cx $(, $argument:ident: $type:ty)*) $(-> $result:ty)?;)*) => {
        impl Sender {
            $($(#[$attribute])*
            pub(crate) fn $name<P: Policy>(&mut self, cx: Cx<'_, P> $(, $argument: $type)*) $(-> $result)? {
                each!(self, kind => {
                    let mut cx = cx;
                    kind.$name(&mut cx $(, $argument)*)
                })
            })*
        }
    };
}

forward! {
    fn close(&mut self, common: &mut EndpointShared);
    fn deadline(&mut self, flight: &Flight, clock: &Clock<'_>) -> Option<Time>;
    fn on_nack(&mut self, nack: &Nack, flight: &mut Flight, lost: &mut Vec<u64>);
    fn on_missing(&mut self, psns: &[u64], flight: &mut Flight, lost: &mut Vec<u64>);
    fn on_path_down(&mut self, path: PathId, common: &mut EndpointShared);
    fn on_probe_sent(&mut self, now: Time, path: PathId);
}

forward_reads! {
    fn is_selective(&self) -> bool;
    fn exceeds_window(&self) -> bool;
    fn is_silent(&self, slot: &Slot) -> bool;
    fn path_of_held_ack(&self, probe: PathId, own: PathId) -> Option<PathId>;
    fn timeout(&self, clock: ClockValues<'_>) -> Duration;
    fn expects(&self, flight: &Flight, psn: u64, sent_at: Time) -> bool;
    fn probe_at(&self, flight: &Flight) -> Option<Time>;
    fn assert_covered(&self, num: QpNum, flight: &Flight, common: &EndpointShared, is_armed: bool);
}

forward_with_context! {
    #[inline(always)]
    fn on_sent(cx, sent: Departed) -> Option<Time>;
    #[inline(always)]
    fn on_acked(cx, slot: &Slot, echoed: bool);
    #[inline(always)]
    fn on_trigger(cx, trigger: Trigger) -> Option<FeedbackKind>;
    #[inline(always)]
    fn on_ack(cx, path: PathId) -> NextCheck;
    #[inline(always)]
    fn detect(cx) -> NextCheck;
    fn abandon(cx, dead: &[PathId]) -> Verdict;
    fn on_timer(cx, blocked: BlockedBy) -> Verdict;
    fn on_suspect(cx, suspect: &Suspect) -> Verdict;
    fn probe(cx) -> Probes;
    fn on_probe_answered(cx, sent_at: Time, path: PathId) -> bool;
}

/// Window of the sender in packets: that of the receiver, unless the scheme sends packets that the receiver will
/// drop.
pub(crate) fn sender_window(recovery: Recovery) -> u32 {
    let own = recovery.sender_window_packets().map(receiver::allowed);
    own.unwrap_or_else(|| receiver::window_packets(recovery))
}

#[cfg(test)]
mod tests {
    use pathweave_wire::NackReason;

    use super::*;

    /// The retransmission state of a queue pair fills the rest of its cache line.
    #[test]
    fn the_tag_takes_no_room() {
        assert_eq!((size_of::<Sender>(), size_of::<timed::Sender>()), (40, 40));
    }

    #[test]
    fn other_kinds_keep_the_configured_timer() {
        let configured = RetransmissionConfig::default();
        assert_eq!(timer(Recovery::GoBackN, configured, Duration::ZERO), configured);
    }

    #[test]
    fn a_sender_may_send_what_the_receiver_drops_and_names() {
        let of = |sender_window_packets| Recovery::SelectiveRepeat {
            reorder_packets: 0,
            window_packets: Some(108),
            sender_window_packets,
        };
        assert_eq!([of(None), of(Some(4_096))].map(sender_window), [108, 4_096]);
        let mut receiver = Receiver::new(of(Some(4_096)));
        assert_eq!(receiver.judge(Time::ZERO, 107), Arrival::Ahead);
        let refused = Arrival::Refused { reason: NackReason::BeyondWindow, tell: true };
        assert_eq!(receiver.judge(Time::ZERO, 108), refused);
    }
}
