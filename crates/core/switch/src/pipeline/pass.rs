//! Checks one packet's pass through the stages.

/// 1 if this build checks the rules, else 0.
const CHECKED: usize = cfg!(any(debug_assertions, feature = "checks")) as usize;

/// One packet's pass through the pipeline; every access to an array takes it as an argument.
///
/// It holds the present stage and the arrays touched, in builds that check the rules. In other builds it is
/// empty and costs nothing.
#[derive(Debug)]
pub struct Pass {
    way: [PassState; CHECKED],
}

impl Pass {
    /// A packet enters stage 0 of `program`.
    #[inline]
    pub const fn begin(program: &'static str) -> Self {
        Self { way: [PassState { program, stage: 0, touched: 0 }; CHECKED] }
    }

    /// Notes an access to array number `array` in `stage`.
    #[inline]
    pub(super) fn touch(&mut self, array: u8, name: &'static str, stage: u8) {
        for way in &mut self.way {
            way.touch(array, name, stage);
        }
    }
}

/// The stage of a packet, and the arrays that it has touched.
#[derive(Clone, Copy, Debug)]
struct PassState {
    program: &'static str,
    stage: u8,
    touched: u64,
}

impl PassState {
    fn touch(&mut self, array: u8, name: &'static str, stage: u8) {
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
