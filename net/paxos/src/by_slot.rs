//! What is kept by slot. Slots are numbered without a gap, so it lies in a row, and is found without a search.

use std::collections::{BTreeMap, VecDeque};

use crate::entry::Slot;

/// Values by slot. Between the first slot that has one and the last, those that have none take room too.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct BySlot<T> {
    /// The slot of the front of the row.
    first: Slot,
    row: VecDeque<Option<T>>,
}

impl<T> BySlot<T> {
    pub(crate) fn get(&self, slot: Slot) -> Option<&T> {
        let place = slot.0.checked_sub(self.first.0)?;
        self.row.get(usize::try_from(place).ok()?)?.as_ref()
    }

    /// Puts `value` in the place of what was there.
    pub(crate) fn insert(&mut self, slot: Slot, value: T) {
        if self.row.is_empty() {
            self.first = slot;
        }
        while slot < self.first {
            self.row.push_front(None);
            self.first.0 -= 1;
        }
        let place = (slot.0 - self.first.0) as usize;
        while self.row.len() <= place {
            self.row.push_back(None);
        }
        self.row[place] = Some(value);
    }

    /// Forgets what the slots up to `slot` have.
    pub(crate) fn trim(&mut self, slot: Slot) {
        let Some(before) = slot.0.checked_sub(self.first.0) else {
            return;
        };
        let gone = (self.row.len() as u64).min(before.saturating_add(1));
        self.row.drain(..gone as usize);
        self.first.0 += gone;
    }

    /// The values of the slots from `from` on, ascending.
    pub(crate) fn range(&self, from: Slot) -> impl Iterator<Item = (Slot, &T)> {
        let begin = from.0.saturating_sub(self.first.0);
        let begin = begin.min(self.row.len() as u64) as usize;
        let slots = (self.first.0 + begin as u64..).map(Slot);
        let values = slots.zip(self.row.range(begin..));
        values.filter_map(|(slot, value)| Some((slot, value.as_ref()?)))
    }
}

impl<T> From<BTreeMap<Slot, T>> for BySlot<T> {
    fn from(values: BTreeMap<Slot, T>) -> Self {
        let mut slots = Self {
            first: Slot::NONE,
            row: VecDeque::new(),
        };
        for (slot, value) in values {
            slots.insert(slot, value);
        }
        slots
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::BySlot;
    use crate::entry::Slot;

    #[test]
    fn what_was_put_in_is_found_in_order_whatever_the_order_in_which_it_came() {
        let mut slots = BySlot::from(BTreeMap::from([(Slot(7), 'a')]));
        for (slot, value) in [(9, 'b'), (4, 'c'), (7, 'd'), (5, 'e')] {
            slots.insert(Slot(slot), value);
        }
        let all = [(4, 'c'), (5, 'e'), (7, 'd'), (9, 'b')];
        for from in 0..12 {
            let found: Vec<_> = slots
                .range(Slot(from))
                .map(|(slot, c)| (slot.0, *c))
                .collect();
            let expected: Vec<_> = all.into_iter().filter(|(slot, _)| *slot >= from).collect();
            assert_eq!(found, expected, "from {from}");
            let expected = all.iter().find(|(slot, _)| *slot == from);
            assert_eq!(slots.get(Slot(from)), expected.map(|(_, value)| value));
        }
        assert_eq!(slots.get(Slot(u64::MAX)), None);
        assert_eq!(slots.range(Slot(u64::MAX)).count(), 0);
    }

    #[test]
    fn what_is_trimmed_is_gone_and_the_rest_is_where_it_was() {
        let all = [(4, 'c'), (5, 'e'), (7, 'd')];
        for to in (0..10).chain([u64::MAX]) {
            let mut slots =
                BySlot::from(BTreeMap::from(all.map(|(slot, value)| (Slot(slot), value))));
            slots.trim(Slot(to));
            let left = slots.range(Slot::NONE).map(|(slot, c)| (slot.0, *c));
            let expected = all.into_iter().filter(|(slot, _)| *slot > to);
            assert_eq!(
                left.collect::<Vec<_>>(),
                expected.collect::<Vec<_>>(),
                "{to}"
            );
            slots.insert(Slot(20), 'f');
            slots.insert(Slot(11), 'g');
            assert_eq!(
                (slots.get(Slot(11)), slots.get(Slot(20))),
                (Some(&'g'), Some(&'f'))
            );
        }
    }
}
