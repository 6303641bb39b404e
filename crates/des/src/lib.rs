//! Discrete-event core: monotone event queue and random streams
