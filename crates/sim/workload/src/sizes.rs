//! The default classes of tasks by size: each class spans the same factor of sizes.

use sluice_events::dice::Dice;
use sluice_wire::Nanos;
use sluice_wire::registrations::Sizes;

use super::Class;

/// How many tasks are drawn to find the sizes. The draws are always the same, so a workload has the same
/// classes at every load and in every replication.
const DRAWN: u32 = 100_000;
const SEED: u64 = 1;
/// One task in so many is smaller than the size that counts as the smallest, and one in so many is larger
/// than the size that counts as the largest.
const OUTSIDE: usize = 100;

/// So many classes by size, each of which spans the same factor between its smallest and its largest size.
/// Without classes if all sizes are equal.
pub fn equal_spans<'c>(tasks: impl Iterator<Item = &'c Class>, classes: u8) -> Sizes {
    let drawn = draw(&tasks.collect::<Vec<_>>());
    let Some(last) = drawn.len().checked_sub(1) else { return Sizes::default() };
    let (least, most) = (drawn[last / OUTSIDE].0 as f64, drawn[last - last / OUTSIDE].0 as f64);
    let end = |class: u8| {
        let end = least * libm::pow(most / least, f64::from(class) / f64::from(classes));
        Nanos(end as u64)
    };
    Sizes::new(&(1..classes).map(end).collect::<Vec<_>>()).unwrap_or_default()
}

/// Sizes of drawn tasks, the smallest first.
fn draw(tasks: &[&Class]) -> Vec<Nanos> {
    let all: f64 = tasks.iter().map(|class| class.share).sum();
    let mut dice = Dice::named(SEED, "classes by size", 0);
    let mut drawn = Vec::with_capacity(DRAWN as usize);
    for class in tasks {
        let count = (f64::from(DRAWN) * class.share / all) as u32;
        drawn.extend((0..count).map(|_| class.service.draw(&mut dice)));
    }
    drawn.sort_unstable();
    drawn
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Workload;

    fn sizes(workload: &str, classes: u8) -> Vec<u64> {
        let workload = Workload::parse(workload).unwrap();
        equal_spans(workload.classes.iter(), classes).ends().iter().map(|end| end.0).collect()
    }

    #[test]
    fn each_class_spans_the_same_factor() {
        assert_eq!(sizes("bimodal:10us:160us:0.5", 4), [20_000, 40_000, 80_000]);
        assert_eq!(sizes("bimodal:10us:160us:0.5", 2), [40_000]);
        let [first, second, third] = sizes("exp:10us", 4)[..] else { panic!("four classes") };
        assert!((0.99..1.01).contains(&(second as f64 * second as f64 / first as f64 / third as f64)));
        assert!((430..490).contains(&first), "100 ns to 46 us are a factor of 460: {first}");
    }

    #[test]
    fn sizes_that_do_not_differ_are_one_class() {
        assert_eq!(sizes("const:10us", 4), Vec::<u64>::new());
    }
}
