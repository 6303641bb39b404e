//! Load balancing in switches: the choice among several next hops of a packet. Schemes require a kind, the fabric
//! performs it.

macro_rules! forwardings {
    ($( $(#[$meta:meta])* $kind:ident $name:literal, )*) => {
        /// Choice of a switch among equal-cost next hops.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema))]
        pub enum Forwarding { $( $(#[$meta])* #[cfg_attr(feature = "serde", serde(rename = $name))] $kind ),* }

        impl Forwarding {
            /// All kinds.
            pub const ALL: &[Forwarding] = &[$(Forwarding::$kind),*];

            /// Returns the kind's name in a scenario.
            pub fn name(self) -> &'static str {
                match self { $( Forwarding::$kind => $name ),* }
            }
        }
    };
}

forwardings! {
    /// Hash of source, destination and path entropy.
    #[default]
    Ecmp "ecmp",
    /// Hash as for ECMP, with shares in proportion to the capacity that each next hop has to the destination (WCMP,
    /// EuroSys 2014).
    Wcmp "wcmp",
    /// A random next hop for every packet.
    Rps "rps",
    /// A random next hop for every packet, with shares by capacity.
    WeightedRps "weighted-rps",
    /// A random next hop for every flowlet (LetFlow, NSDI 2017).
    LetFlow "letflow",
    /// For every packet the next hop with the shortest queue among a few random ones and the best of the previous
    /// choice (DRILL, SIGCOMM 2017).
    Drill "drill",
    /// For every packet the shortest route, or a route by a random intermediate switch if its queue is shorter
    /// (UGAL-L, ISCA 2008; made for Dragonfly). Each host must be attached to a single switch.
    Ugal "ugal",
    /// For every flowlet the least congested route to the leaf of the receiver (CONGA, SIGCOMM 2014). Each host must
    /// be attached to a single switch.
    Conga "conga",
    /// Flows leave routes with a long round-trip time, and the switch of the receiver restores their order (ConWeave,
    /// SIGCOMM 2023). Each host must be attached to a single switch.
    ConWeave "conweave",
}
