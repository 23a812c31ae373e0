//! Controllers, switches and hosts that register, over loopback.

mod authority;
mod hostile;
mod names;
mod outage;
mod rack;
mod register;
mod secure;
mod turns;
