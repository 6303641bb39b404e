//! Workloads as graphs of messages: permutations, collectives, size distributions, flow files
