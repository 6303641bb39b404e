//! Topologies, their files, routing and path sets
