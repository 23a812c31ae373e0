//! Escapes all text in messages before it is printed.
//!
//! Names are checked when they come in ([`check_name`](sluice_control::check_name)). This module is for
//! sentences, and for names that another process should have checked.

pub use sluice_units::shown;

use super::v1;

impl v1::StatusResponse {
    /// The message with all its text escaped for printing.
    #[must_use]
    pub fn shown(mut self) -> Self {
        if let Some(switch) = &mut self.switch {
            show(&mut switch.at);
            switch.counters.iter_mut().for_each(|counter| show(&mut counter.name));
        }
        for slice in &mut self.slices {
            show(&mut slice.name);
            slice.classes.iter_mut().flat_map(|class| &mut class.needs).for_each(show);
        }
        for worker in &mut self.workers {
            show_both(&mut worker.name, &mut worker.at);
            worker.labels.iter_mut().for_each(show);
        }
        self.clients.iter_mut().for_each(|client| show_both(&mut client.name, &mut client.at));
        self.servers.iter_mut().for_each(|server| show_both(&mut server.name, &mut server.at));
        self.refused.iter_mut().for_each(|counter| show(&mut counter.name));
        self.ending.iter_mut().for_each(|end| show(&mut end.certificate));
        self.lost.iter_mut().for_each(|lost| show(&mut lost.name));
        let earlier =
            self.earlier.iter_mut().flat_map(|look| look.counters.iter_mut().chain(&mut look.refused));
        earlier.for_each(|counter| show(&mut counter.name));
        for process in &mut self.processes {
            show(&mut process.process);
            process.folder.iter_mut().for_each(|folder| show_both(&mut folder.path, &mut folder.why_not));
        }
        self.superseded.iter_mut().for_each(|caller| show(&mut caller.who));
        self.standing = self.standing.take().map(v1::StandingResponse::shown);
        for of in &mut self.builds {
            show_both(&mut of.kind, &mut of.name);
            show(&mut of.build);
        }
        self.type_names.iter_mut().for_each(|of| show(&mut of.name));
        self
    }
}

impl v1::StandingResponse {
    /// The message with all its text escaped for printing.
    #[must_use]
    pub fn shown(mut self) -> Self {
        show_both(&mut self.leader, &mut self.untold);
        show(&mut self.etcd_lost);
        self.standbys.iter_mut().for_each(show);
        self
    }
}

impl v1::WatchResponse {
    /// The message with all its text escaped for printing.
    #[must_use]
    pub fn shown(mut self) -> Self {
        show_both(&mut self.kind, &mut self.text);
        if let Some(interval) = &mut self.interval {
            show(&mut interval.server);
        }
        if let Some(step) = &mut self.step {
            show(&mut step.slice);
            if let Some(lending) = &mut step.lending {
                show(&mut lending.from);
            }
        }
        self
    }
}

fn show(text: &mut String) {
    *text = shown(text);
}

fn show_both(one: &mut String, other: &mut String) {
    show(one);
    show(other);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sluice_control::check_name;

    use super::*;

    proptest! {
        #[test]
        fn a_name_is_shown_as_it_is(text in "[a-z0-9][A-Za-z0-9_./:@+-]{0,63}") {
            prop_assert!(check_name(&text).is_ok());
            prop_assert_eq!(shown(&text), text);
        }
    }
}
