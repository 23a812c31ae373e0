//! The program's sizes, as the compiler gets them.

use sluice_switch::Config;

/// How many bits an index below this count takes, at least one.
pub(crate) fn bits(count: u32) -> u32 {
    count.next_power_of_two().trailing_zeros().max(1)
}

/// How many bits a draw of the random unit has: twice as many draws as a slice can have workers.
pub(crate) fn draw_bits(config: &Config) -> u32 {
    bits(config.workers.into()) + 1
}

/// The compiler's flags for a switch of this size.
pub(crate) fn flags(config: &Config) -> Vec<String> {
    let sizes = [
        ("WORKERS", config.workers.into()),
        ("CLIENTS", config.clients.into()),
        ("TYPES", config.types.into()),
        ("CLIENT_BITS", bits(config.clients.into())),
        ("SLICE_BITS", bits(config.slices.into())),
        ("TASK_BITS", bits(config.tasks_per_slice)),
        ("TOKEN_BITS", bits(config.tokens_per_slice)),
        ("REPLAY_BITS", bits(config.replay_cells)),
        ("SERVERS", config.servers.max(1).into()),
        ("SEAT_BITS", bits(config.workers.into())),
        ("DRAW_BITS", draw_bits(config)),
    ];
    sizes.map(|(name, size)| format!("-D{name}={size}")).to_vec()
}
