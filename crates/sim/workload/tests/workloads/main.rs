//! Tests of workloads: their tasks, arrivals and service times.

mod cluster;
mod requests;
mod services;
mod text;
