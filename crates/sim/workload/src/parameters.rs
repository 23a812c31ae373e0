//! Reads the values behind a distribution's name, one after the other.

use sluice_wire::Nanos;

use super::bounds::{MEAN_MAX, SERVICE_MAX};
use super::text;

/// The values between the colons that are still to be read.
#[derive(Debug)]
pub(super) struct Parameters<'t> {
    left: Option<&'t str>,
}

impl<'t> Parameters<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { left: Some(text).filter(|text| !text.is_empty()) }
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.left.is_none()
    }

    /// Refuses values that are left over.
    pub(super) fn end(&self) -> Result<(), String> {
        self.left.map_or(Ok(()), |left| Err(format!("`{left}` is more than it takes")))
    }

    /// A span that a task's service may have.
    pub(super) fn service(&mut self, what: &str) -> Result<Nanos, String> {
        let given = self.next(what)?;
        service(given, what)
    }

    /// The mean of a distribution without an upper end.
    pub(super) fn mean(&mut self) -> Result<Nanos, String> {
        let mean = self.service("mean")?;
        if mean > MEAN_MAX {
            return Err(format!("the mean {} is above {}", text::show_span(mean), text::show_span(MEAN_MAX)));
        }
        Ok(mean)
    }

    pub(super) fn span(&mut self, what: &str) -> Result<Nanos, String> {
        text::span(self.next(what)?).map_err(|why| format!("the {what}: {why}"))
    }

    pub(super) fn share(&mut self, what: &str) -> Result<f64, String> {
        text::share(self.next(what)?).map_err(|why| format!("the {what}: {why}"))
    }

    pub(super) fn number_within(&mut self, what: &str, low: f64, high: f64) -> Result<f64, String> {
        let number = text::number(self.next(what)?).map_err(|why| format!("the {what}: {why}"))?;
        if (low..=high).contains(&number) {
            Ok(number)
        } else {
            Err(format!("the {what} {number} is not from {low} to {high}"))
        }
    }

    /// Reads `SPAN@SHARE`.
    pub(super) fn mode(&mut self) -> Result<(Nanos, f64), String> {
        let given = self.next("mode")?;
        let (span, share) = given.split_once('@').ok_or_else(|| format!("the mode `{given}` has no `@`"))?;
        Ok((service(span, "mode")?, text::share(share).map_err(|why| format!("the mode `{given}`: {why}"))?))
    }

    fn next(&mut self, what: &str) -> Result<&'t str, String> {
        let left = self.left.take().ok_or_else(|| format!("the {what} is missing"))?;
        match left.split_once(':') {
            Some((given, rest)) => {
                self.left = Some(rest);
                Ok(given)
            }
            None => Ok(left),
        }
    }
}

fn service(given: &str, what: &str) -> Result<Nanos, String> {
    let span = text::span(given).map_err(|why| format!("the {what}: {why}"))?;
    if span == Nanos(0) {
        return Err(format!("the {what} is 0; a service takes at least 1ns"));
    }
    if span > SERVICE_MAX {
        return Err(format!("the {what} `{given}` is above {}", text::show_span(SERVICE_MAX)));
    }
    Ok(span)
}
