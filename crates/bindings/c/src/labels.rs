//! Labels that tasks need of their workers.

use std::ffi::c_char;
use std::sync::LazyLock;

use sluice_net::client::RequiredLabels;

use crate::fault::{Fault, call};
use crate::pointers::{ResultPlace, list, text};
use crate::table::{HandleKind, HandleTable};
use crate::types::{SluiceLabels, SluiceStatus};

static LABELS: LazyLock<HandleTable<RequiredLabels>> = LazyLock::new(|| HandleTable::new(HandleKind::Labels));

/// The labels of a task.
pub(crate) fn required(labels: SluiceLabels) -> Result<RequiredLabels, Fault> {
    match labels.id {
        0 => Ok(RequiredLabels::default()),
        id => LABELS.with(id, RequiredLabels::clone),
    }
}

/// Labels for tasks, by their names in the plan.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sluice_labels_new(
    names: *const *const c_char,
    count: usize,
    labels: *mut SluiceLabels,
) -> SluiceStatus {
    call(|| {
        // SAFETY: as the header asks.
        let (names, place) = unsafe { (list(names, count, "names")?, ResultPlace::empty(labels, "labels")?) };
        // SAFETY: as the header asks.
        let names = names.into_iter().map(|name| unsafe { text(name, "names") });
        let names = names.collect::<Result<Vec<&str>, _>>()?;
        place.put(SluiceLabels { id: LABELS.add(RequiredLabels::of(names))? });
        Ok(())
    })
}

/// Frees labels; tasks that were submitted with them keep them.
#[unsafe(no_mangle)]
pub extern "C" fn sluice_labels_free(labels: SluiceLabels) -> SluiceStatus {
    call(|| LABELS.take(labels.id).map(drop))
}
