//! One packet's way through the stages, checked.

/// Whether the rules are checked in this build.
const CHECKED: bool = cfg!(any(debug_assertions, feature = "checks"));

/// One packet's way through the pipeline. Every access to an array shows it.
#[derive(Debug)]
pub struct Pass {
    program: &'static str,
    stage: u8,
    touched: u64,
}

impl Pass {
    /// A packet enters stage 0 of `program`.
    #[inline]
    pub const fn begin(program: &'static str) -> Self {
        Self { program, stage: 0, touched: 0 }
    }

    /// Notes an access to array number `array` in `stage`.
    #[inline]
    pub(super) fn touch(&mut self, array: u8, name: &'static str, stage: u8) {
        if CHECKED {
            self.check(array, name, stage);
        }
    }

    fn check(&mut self, array: u8, name: &'static str, stage: u8) {
        assert!(self.touched & (1 << array) == 0, "{}: touches {name} twice in one pass", self.program);
        assert!(
            stage >= self.stage,
            "{}: goes back from stage {} to {name} in stage {stage}",
            self.program,
            self.stage
        );
        self.touched |= 1 << array;
        self.stage = stage;
    }
}
