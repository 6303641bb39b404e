//! Sans-I/O endpoint: queue pairs, messages, placement, acknowledgements, loss recovery
