//! A flatbuffer, written from its beginning to its end: a table first, then what it points to, so that
//! offsets, which are unsigned, point forward.
//!
//! Source: <https://flatbuffers.dev/internals/>.

/// What a table holds in one of its places, in the order of its schema.
pub(super) enum Slot {
    /// Nothing: the default.
    Absent,
    Byte(u8),
    Short(i16),
    Int(i32),
    Long(i64),
    /// Where something is that is written later.
    Offset,
}

impl Slot {
    /// Its length in bytes, which it is aligned to as well.
    const fn size(&self) -> usize {
        match self {
            Slot::Absent => 0,
            Slot::Byte(_) => 1,
            Slot::Short(_) => 2,
            Slot::Int(_) | Slot::Offset => 4,
            Slot::Long(_) => 8,
        }
    }

    fn bytes(&self) -> Vec<u8> {
        match self {
            Slot::Absent => Vec::new(),
            Slot::Byte(value) => value.to_le_bytes().into(),
            Slot::Short(value) => value.to_le_bytes().into(),
            Slot::Int(value) => value.to_le_bytes().into(),
            Slot::Long(value) => value.to_le_bytes().into(),
            Slot::Offset => vec![0; 4],
        }
    }
}

/// The place of an offset that is not yet known.
#[derive(Clone, Copy)]
pub(super) struct Pending(usize);

/// A flatbuffer that grows.
pub(super) struct Writer {
    bytes: Vec<u8>,
    /// The offset that the next table is the target of.
    next: Option<Pending>,
}

impl Writer {
    /// Returns an empty one; the first table is its root.
    pub(super) fn new() -> Self {
        Writer { bytes: vec![0; 4], next: Some(Pending(0)) }
    }

    /// Lets `offset` point to the table that is written next.
    pub(super) fn place(&mut self, offset: Pending) {
        self.next = Some(offset);
    }

    /// Writes a table. Returns the places of its offsets; `N` must be how many there are.
    pub(super) fn table<const N: usize>(&mut self, slots: &[Slot]) -> [Pending; N] {
        // Its own head is the distance to its list of places, which stands before it.
        let mut length = 4_usize;
        let places: Vec<usize> = slots
            .iter()
            .map(|slot| match slot.size() {
                0 => 0,
                size => {
                    let place = length.next_multiple_of(size);
                    length = place + size;
                    place
                }
            })
            .collect();
        let head = 4 + 2 * slots.len();
        let begin = (self.bytes.len() + head).next_multiple_of(8);
        self.bytes.resize(begin - head, 0);
        for half in [head, length].iter().chain(&places) {
            self.bytes.extend_from_slice(&(*half as u16).to_le_bytes());
        }
        self.bytes.extend_from_slice(&(head as u32).to_le_bytes());
        let mut offsets = Vec::new();
        for (slot, place) in slots.iter().zip(places).filter(|(slot, _)| slot.size() > 0) {
            self.bytes.resize(begin + place, 0);
            if matches!(slot, Slot::Offset) {
                offsets.push(Pending(self.bytes.len()));
            }
            self.bytes.extend_from_slice(&slot.bytes());
        }
        if let Some(offset) = self.next.take() {
            self.point(offset, begin);
        }
        offsets.try_into().unwrap_or_else(|_| unreachable!("a table has as many offsets as its slots say"))
    }

    /// Writes a vector of offsets that are not yet known, where `at` points.
    pub(super) fn offsets(&mut self, at: Pending, count: usize) -> Vec<Pending> {
        self.vector(at, count, 4);
        let begin = self.bytes.len();
        self.bytes.resize(begin + 4 * count, 0);
        (0..count).map(|index| Pending(begin + 4 * index)).collect()
    }

    /// Writes a vector of structs of `N` numbers of 64 bits, where `at` points.
    pub(super) fn structs<const N: usize>(&mut self, at: Pending, values: &[[i64; N]]) {
        self.vector(at, values.len(), 8);
        self.bytes.extend(values.iter().flatten().flat_map(|value| value.to_le_bytes()));
    }

    /// Writes a text, where `at` points.
    pub(super) fn text(&mut self, at: Pending, text: &str) {
        self.vector(at, text.len(), 1);
        self.bytes.extend_from_slice(text.as_bytes());
        self.bytes.push(0);
    }

    /// Writes the length of a vector, so that its values are aligned.
    fn vector(&mut self, at: Pending, count: usize, alignment: usize) {
        let values = (self.bytes.len() + 4).next_multiple_of(alignment.max(4));
        self.bytes.resize(values - 4, 0);
        self.point(at, values - 4);
        self.bytes.extend_from_slice(&(count as u32).to_le_bytes());
    }

    fn point(&mut self, Pending(at): Pending, target: usize) {
        self.bytes[at..at + 4].copy_from_slice(&((target - at) as u32).to_le_bytes());
    }

    /// Returns the whole, as long as a multiple of 8.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.resize(self.bytes.len().next_multiple_of(8), 0);
        self.bytes
    }
}
