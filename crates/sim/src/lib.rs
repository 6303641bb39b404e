//! Hosts running the transport on a simulated fabric: runner, observers, checkers
