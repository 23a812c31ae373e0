//! Workloads: what is asked for, when, and how long it takes.

mod cluster;
mod requests;
mod services;
mod text;
