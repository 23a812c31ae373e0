//! Possible mistakes in the program, planted between it and its memory.

use std::cell::Cell;

use sluice_rendezvous::{CellState, Counter, LineWord, Memory, Note, Ring};

use crate::programs::Raw;

/// A planted mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mistake {
    /// A token's number is read and then written, instead of one atomic step.
    TwoTokensMayTakeOneNumber,
    /// A task's number is read and then written, instead of one atomic step.
    TwoTasksMayTakeOneNumber,
    /// A cell's word is read and then written, instead of one exchange.
    TheExchangeIsTwoSteps,
    /// A part's count is read and then written, instead of one atomic step.
    CellsGivenBackAreMiscounted,
    /// A used cell is not emptied: its word stays.
    ACellIsNotEmptied,
    /// A cell is counted as released before it is emptied.
    ACellIsCountedBeforeItIsEmptied,
    /// A cell is released before its task is read.
    ACellIsGivenBackBeforeItIsRead,
    /// No pass checks whether the ring is free.
    NobodyLooksAhead,
    /// A pass that tries another number does not check again.
    WhoGoesRoundDoesNotLookAgain,
    /// A task's word is written before its data.
    ATaskIsThereBeforeItsData,
    /// The word that a SWEEP leaves looks like a token.
    AVoidLooksLikeAToken,
    /// A SWEEP takes a number that another CPU took.
    ASweepDoesNotCompare,
    /// With ranks: the line is read and then written, instead of one atomic step.
    TheLineIsChangedInTwoSteps,
    /// With ranks: a pass continues although another CPU changed the line first.
    WhoLosesTheLineGoesOn,
}

impl Mistake {
    pub(crate) const ALL: [Self; 14] = [
        Self::TwoTokensMayTakeOneNumber,
        Self::TwoTasksMayTakeOneNumber,
        Self::TheExchangeIsTwoSteps,
        Self::CellsGivenBackAreMiscounted,
        Self::ACellIsNotEmptied,
        Self::ACellIsCountedBeforeItIsEmptied,
        Self::ACellIsGivenBackBeforeItIsRead,
        Self::NobodyLooksAhead,
        Self::WhoGoesRoundDoesNotLookAgain,
        Self::ATaskIsThereBeforeItsData,
        Self::AVoidLooksLikeAToken,
        Self::ASweepDoesNotCompare,
        Self::TheLineIsChangedInTwoSteps,
        Self::WhoLosesTheLineGoesOn,
    ];
}

/// A memory in which one pass makes a mistake.
pub(crate) struct Planted<'a, M> {
    memory: &'a M,
    ring: Ring,
    mistake: Option<Mistake>,
    next: Cell<u32>,
    looks: Cell<u32>,
    kept: Cell<[Option<u32>; 2]>,
    given_back: Cell<bool>,
    to_empty: Cell<usize>,
}

impl<'a, M> Planted<'a, M> {
    pub(crate) fn new(memory: &'a M, ring: Ring, mistake: Option<Mistake>) -> Self {
        Self {
            memory,
            ring,
            mistake,
            next: Cell::new(0),
            looks: Cell::new(0),
            kept: Cell::default(),
            given_back: Cell::default(),
            to_empty: Cell::new(0),
        }
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }

    /// Whether this check of the ring is skipped.
    fn looks_away(&self) -> bool {
        self.looks.set(self.looks.get() + 1);
        self.is(Mistake::NobodyLooksAhead)
            || self.is(Mistake::WhoGoesRoundDoesNotLookAgain) && self.looks.get() > 1
    }

    /// Whether this counter is changed in two steps.
    fn in_two_steps(&self, of: Counter) -> bool {
        match of {
            Counter::Tokens(_) => self.is(Mistake::TwoTokensMayTakeOneNumber),
            Counter::Tasks(_) => self.is(Mistake::TwoTasksMayTakeOneNumber),
            Counter::Released(_) => self.is(Mistake::CellsGivenBackAreMiscounted),
        }
    }
}

impl<M: Raw> Memory for Planted<'_, M> {
    type Stop = M::Stop;

    fn read(&self, of: Counter) -> Result<u32, M::Stop> {
        if matches!(of, Counter::Released(_)) && self.looks_away() {
            return Ok(self.ring.wanted(self.next.get()).1);
        }
        let value = self.memory.read(of)?;
        self.next.set(value);
        Ok(value)
    }

    fn take(&self, of: Counter) -> Result<u32, M::Stop> {
        let releases = matches!(of, Counter::Released(_));
        if releases && self.given_back.replace(false) {
            return Ok(0);
        }
        let was = if self.in_two_steps(of) {
            let was = self.memory.read(of)?;
            self.memory.set(of, was.wrapping_add(1))?;
            was
        } else {
            self.memory.take(of)?
        };
        if releases && self.is(Mistake::ACellIsCountedBeforeItIsEmptied) {
            self.memory.empty(self.to_empty.get())?;
        }
        Ok(was)
    }

    fn take_if(&self, of: Counter, next: u32) -> Result<bool, M::Stop> {
        if self.is(Mistake::ASweepDoesNotCompare) {
            return self.memory.set(of, next.wrapping_add(1)).map(|()| true);
        }
        self.memory.take_if(of, next)
    }

    fn line(&self) -> Result<LineWord, M::Stop> {
        self.memory.line()
    }

    fn change_line(&self, was: LineWord, to: LineWord) -> Result<LineWord, M::Stop> {
        if self.is(Mistake::TheLineIsChangedInTwoSteps) {
            let found = self.memory.line()?;
            if found == was {
                self.memory.set_line(to)?;
            }
            return Ok(found);
        }
        let found = self.memory.change_line(was, to)?;
        Ok(if self.is(Mistake::WhoLosesTheLineGoesOn) { was } else { found })
    }

    fn word(&self, cell: usize) -> Result<u64, M::Stop> {
        self.memory.word(cell)
    }

    fn exchange(&self, cell: usize, word: u64) -> Result<u64, M::Stop> {
        let none = Ring::token(0);
        let bits = self.ring.word(0, CellState::Void, none);
        let looks = self.is(Mistake::AVoidLooksLikeAToken) && word & bits == bits;
        let word = if looks { word ^ bits ^ self.ring.word(0, CellState::Token, none) } else { word };
        let found = if self.is(Mistake::TheExchangeIsTwoSteps) {
            let found = self.memory.word(cell)?;
            self.memory.set_word(cell, word)?;
            found
        } else {
            self.memory.exchange(cell, word)?
        };
        for (part, value) in self.kept.take().into_iter().enumerate() {
            if let Some(value) = value {
                self.memory.write(cell, part, value)?;
            }
        }
        Ok(found)
    }

    fn empty(&self, cell: usize) -> Result<(), M::Stop> {
        if self.given_back.get() || self.is(Mistake::ACellIsNotEmptied) {
            return Ok(());
        }
        if self.is(Mistake::ACellIsCountedBeforeItIsEmptied) {
            self.to_empty.set(cell);
            return Ok(());
        }
        self.memory.empty(cell)
    }

    fn write(&self, cell: usize, part: usize, value: u32) -> Result<(), M::Stop> {
        if self.is(Mistake::ATaskIsThereBeforeItsData) {
            let mut kept = self.kept.get();
            kept[part] = Some(value);
            self.kept.set(kept);
            return Ok(());
        }
        self.memory.write(cell, part, value)
    }

    fn data(&self, cell: usize, part: usize) -> Result<u32, M::Stop> {
        if self.is(Mistake::ACellIsGivenBackBeforeItIsRead) && part == 0 {
            self.memory.empty(cell)?;
            self.memory.take(Counter::Released(cell >> self.ring.part_bits))?;
            self.given_back.set(true);
        }
        self.memory.data(cell, part)
    }

    fn note(&self, note: Note) {
        self.memory.note(note);
    }
}
