//! Controllers, switches and registering hosts over loopback.

mod above;
mod authority;
mod hostile;
mod names;
mod outage;
mod rack;
mod register;
mod renewed;
mod secure;
mod standby;
mod turns;
