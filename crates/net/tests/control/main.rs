//! Controllers, switches and hosts that register, over loopback.

mod outage;
mod rack;
mod register;
mod secure;
