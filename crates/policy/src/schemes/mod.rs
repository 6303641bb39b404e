//! The named schemes. Each is one file here, its `mod` line and one line of [`schemes`].

mod common;
mod conga;
mod conweave;
mod dlbf;
mod dlbf_published;
mod drill;
mod ecmp;
mod ecmp_sr;
mod eqds;
mod erd;
mod hpcc;
mod info;
mod laps;
mod laps_code_2025;
mod laps_hw;
mod laps_published;
mod letflow;
mod mprdma;
mod mprdma_half_window;
mod mrc;
mod mswift;
mod ndp;
mod per_message;
mod plb;
mod qp_scaling;
mod reflex;
mod reps;
mod rps;
mod rps_nocc;
mod smartt;
mod strack;
mod swift;
mod swift_rps;
mod switch_rps;
mod timely;
mod udmp;
mod udmp_published;
mod uet;
mod uet_nscc;
mod uet_rccc;
mod ugal;
mod wcmp;
mod weave;

pub use info::SchemeInfo;

/// Returns all schemes, in the order of listings.
pub fn schemes() -> &'static [SchemeInfo] {
    &[
        ecmp::ECMP,
        ecmp_sr::ECMP_SR,
        qp_scaling::QP_SCALING,
        qp_scaling::QP32,
        per_message::PER_MESSAGE,
        rps::RPS,
        rps_nocc::RPS_NOCC,
        udmp::UDMP,
        udmp_published::UDMP_PUBLISHED,
        mprdma::MPRDMA,
        mprdma_half_window::MPRDMA_HALF_WINDOW,
        swift_rps::SWIFT_RPS,
        reps::REPS,
        smartt::INFO,
        strack::STRACK,
        uet_nscc::INFO,
        uet_rccc::INFO,
        uet::INFO,
        eqds::INFO,
        ndp::INFO,
        mswift::INFO,
        mrc::INFO,
        weave::WEAVE,
        timely::TIMELY,
        swift::SWIFT,
        swift::SWIFT_PUBLISHED,
        hpcc::HPCC,
        reflex::REFLEX_TIMELY,
        reflex::REFLEX_TIMELY_PUBLISHED,
        reflex::REFLEX_TIMELY_SCALED,
        reflex::REFLEX_SWIFT,
        reflex::REFLEX_SWIFT_PUBLISHED,
        plb::DCTCP,
        plb::PLB,
        laps::LAPS,
        laps_published::INFO,
        laps_code_2025::INFO,
        laps_hw::INFO,
        laps::LAPS_TCP,
        letflow::LETFLOW,
        conga::CONGA,
        conweave::CONWEAVE,
        drill::DRILL,
        switch_rps::SWITCH_RPS,
        switch_rps::SWITCH_WRPS,
        wcmp::WCMP,
        ugal::UGAL,
        dlbf::INFO,
        dlbf::WAIT,
        dlbf_published::INFO,
        erd::ERD,
        erd::ERD_UNCONTROLLED,
        erd::XRC,
        erd::RD,
    ]
}

/// Returns the scheme with this name or alias.
pub fn find_scheme(name: &str) -> Option<&'static SchemeInfo> {
    schemes().iter().find(|scheme| scheme.name == name || scheme.aliases.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;

    #[test]
    fn every_scheme_is_valid_and_every_name_its_own() {
        let mut names = BTreeSet::new();
        for scheme in schemes() {
            assert_eq!((scheme.make)().validate(), Ok(()), "{}", scheme.name);
            assert!(!scheme.help.is_empty() && !scheme.source.is_empty(), "{}", scheme.name);
            for name in scheme.aliases.iter().chain([&scheme.name]) {
                assert!(names.insert(*name), "{name} names two schemes");
                assert_eq!(find_scheme(name).map(|found| found.name), Some(scheme.name));
            }
        }
        assert!(find_scheme("spray").is_none());
    }
}
