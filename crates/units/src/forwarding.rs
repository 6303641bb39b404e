//! What switches do with a packet that may take several next hops: said by schemes, done by the fabric.

macro_rules! forwardings {
    ($( $(#[$meta:meta])* $kind:ident $name:literal, )*) => {
        /// How a switch chooses among equal-cost next hops.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum Forwarding { $( $(#[$meta])* #[cfg_attr(feature = "serde", serde(rename = $name))] $kind ),* }

        impl Forwarding {
            /// All there are.
            pub const ALL: &[Forwarding] = &[$(Forwarding::$kind),*];

            /// Its name in a scenario.
            pub fn name(self) -> &'static str {
                match self { $( Forwarding::$kind => $name ),* }
            }
        }
    };
}

forwardings! {
    /// By a hash of source, destination and path entropy.
    #[default]
    Ecmp "ecmp",
    /// By that hash, with shares by the capacity that each next hop has to the destination (WCMP, EuroSys 2014).
    Wcmp "wcmp",
    /// A random one for every packet.
    Rps "rps",
    /// A random one for every packet, with shares by capacity.
    WeightedRps "weighted-rps",
    /// A random one for every flowlet (LetFlow, NSDI 2017).
    LetFlow "letflow",
    /// For every packet the shortest queue among a few random ones and the best one seen before (DRILL, SIGCOMM 2017).
    Drill "drill",
    /// For every packet the shortest way, or one by a random other switch where less waits for that (UGAL-L, ISCA 2008;
    /// made for Dragonfly). Each host must be at one switch.
    Ugal "ugal",
    /// For every flowlet the way that is least congested as far as the leaf of the receiver (CONGA, SIGCOMM 2014). Each
    /// host must be at one switch.
    Conga "conga",
    /// Flows leave ways with a long round trip, and the switch of the receiver puts them in order (ConWeave, SIGCOMM 2023).
    /// Each host must be at one switch.
    ConWeave "conweave",
}
