//! The durable half of a consensus node.
