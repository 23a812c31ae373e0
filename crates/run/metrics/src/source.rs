//! What gives values when a process is scraped.

use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::Arc;

use crate::measured::MetricSample;

/// The values that a source will give.
pub type Collecting<'s> = Pin<Box<dyn Future<Output = Vec<MetricSample>> + Send + 's>>;

/// Gives the values of some metrics. A scrape asks all sources of a process one after the other, so a source
/// must answer soon; one that has to ask others gives up after a while and leaves its values out.
pub trait MetricSource: Send + Sync + 'static {
    /// The values now.
    fn collect(&self) -> Collecting<'_>;
}

impl<F: Fn() -> Vec<MetricSample> + Send + Sync + 'static> MetricSource for F {
    fn collect(&self) -> Collecting<'_> {
        Box::pin(ready(self()))
    }
}

/// A source whose values all have one more label, for several of the same kind in one process.
pub fn labelled(name: &'static str, value: String, source: Arc<dyn MetricSource>) -> Arc<dyn MetricSource> {
    Arc::new(LabelledSource { name, value, source })
}

struct LabelledSource {
    name: &'static str,
    value: String,
    source: Arc<dyn MetricSource>,
}

impl MetricSource for LabelledSource {
    fn collect(&self) -> Collecting<'_> {
        Box::pin(async {
            let values = self.source.collect().await;
            values.into_iter().map(|value| value.below(self.name, self.value.clone())).collect()
        })
    }
}
