//! The papers' figures as plans.

/// The plans that come with this program.
pub const PLANS: [(&str, &str); 44] = [
    ("rain-1", include_str!("../../../experiments/rain-1.toml")),
    ("rain-2", include_str!("../../../experiments/rain-2.toml")),
    ("rain-6a", include_str!("../../../experiments/rain-6a.toml")),
    ("rain-6b", include_str!("../../../experiments/rain-6b.toml")),
    ("rain-6c", include_str!("../../../experiments/rain-6c.toml")),
    ("rain-7", include_str!("../../../experiments/rain-7.toml")),
    ("rain-8", include_str!("../../../experiments/rain-8.toml")),
    ("rain-9", include_str!("../../../experiments/rain-9.toml")),
    ("rain-10", include_str!("../../../experiments/rain-10.toml")),
    ("rain-11", include_str!("../../../experiments/rain-11.toml")),
    ("rain-early", include_str!("../../../experiments/rain-early.toml")),
    ("rain-ranked", include_str!("../../../experiments/rain-ranked.toml")),
    ("rain-sizes", include_str!("../../../experiments/rain-sizes.toml")),
    ("rain-labels", include_str!("../../../experiments/rain-labels.toml")),
    ("rain-adaptive", include_str!("../../../experiments/rain-adaptive.toml")),
    ("rain-interference", include_str!("../../../experiments/rain-interference.toml")),
    ("draconis-delay", include_str!("../../../experiments/draconis-delay.toml")),
    ("draconis-workers", include_str!("../../../experiments/draconis-workers.toml")),
    ("draconis-policies", include_str!("../../../experiments/draconis-policies.toml")),
    ("draconis-trace", include_str!("../../../experiments/draconis-trace.toml")),
    ("horus-2", include_str!("../../../experiments/horus-2.toml")),
    ("horus-6", include_str!("../../../experiments/horus-6.toml")),
    ("horus-7", include_str!("../../../experiments/horus-7.toml")),
    ("horus-9", include_str!("../../../experiments/horus-9.toml")),
    ("horus-10", include_str!("../../../experiments/horus-10.toml")),
    ("horus-11", include_str!("../../../experiments/horus-11.toml")),
    ("horus-12", include_str!("../../../experiments/horus-12.toml")),
    ("horus-17", include_str!("../../../experiments/horus-17.toml")),
    ("horus-18", include_str!("../../../experiments/horus-18.toml")),
    ("horus-19", include_str!("../../../experiments/horus-19.toml")),
    ("horus-rain", include_str!("../../../experiments/horus-rain.toml")),
    ("pallas-bimodal", include_str!("../../../experiments/pallas-bimodal.toml")),
    ("pallas-trimodal", include_str!("../../../experiments/pallas-trimodal.toml")),
    ("ringleader-3", include_str!("../../../experiments/ringleader-3.toml")),
    ("ringleader-8", include_str!("../../../experiments/ringleader-8.toml")),
    ("ringleader-assignments", include_str!("../../../experiments/ringleader-assignments.toml")),
    ("ringleader-batch", include_str!("../../../experiments/ringleader-batch.toml")),
    ("ringleader-priorities", include_str!("../../../experiments/ringleader-priorities.toml")),
    ("ringleader-rack", include_str!("../../../experiments/ringleader-rack.toml")),
    ("hf2t-1", include_str!("../../../experiments/hf2t-1.toml")),
    ("hf2t-6", include_str!("../../../experiments/hf2t-6.toml")),
    ("hf2t-t2", include_str!("../../../experiments/hf2t-t2.toml")),
    ("hf2t-check", include_str!("../../../experiments/hf2t-check.toml")),
    ("hf2t-together", include_str!("../../../experiments/hf2t-together.toml")),
];

/// Whether a plan that comes with this program is called so.
pub fn is_figure(name: &str) -> bool {
    PLANS.iter().any(|(known, _)| *known == name)
}
