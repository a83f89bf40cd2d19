//! Tables: of aligned columns, which markdown reads as a table too.

use std::fmt;

/// A table. Columns of numbers are aligned at their right.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<String>,
    is_number: Vec<bool>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Without rows. A head that begins with `>` stands over numbers.
    pub(crate) fn new<S: AsRef<str>>(head: &[S]) -> Self {
        let is_number = head.iter().map(|text| text.as_ref().starts_with('>'));
        let text = head
            .iter()
            .map(|text| text.as_ref().trim_start_matches('>'));
        Self {
            is_number: is_number.collect(),
            head: text.map(str::to_owned).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row, of as many cells as the head has.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        debug_assert_eq!(cells.len(), self.head.len());
        self.rows.push(cells);
    }

    fn line(&self, f: &mut fmt::Formatter<'_>, cells: &[String], widths: &[usize]) -> fmt::Result {
        for ((cell, width), is_number) in cells.iter().zip(widths).zip(&self.is_number) {
            if *is_number {
                write!(f, "| {cell:>width$} ")?;
            } else {
                write!(f, "| {cell:<width$} ")?;
            }
        }
        writeln!(f, "|")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| &row[column]);
            let widths = cells.map(|cell| cell.chars().count());
            widths.fold(self.head[column].chars().count().max(3), usize::max)
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width).collect();
        self.line(f, &self.head, &widths)?;
        for (width, is_number) in widths.iter().zip(&self.is_number) {
            let dashes = "-".repeat(*width);
            if *is_number {
                write!(f, "| {}: ", &dashes[1..])?;
            } else {
                write!(f, "| {dashes} ")?;
            }
        }
        writeln!(f, "|")?;
        self.rows
            .iter()
            .try_for_each(|row| self.line(f, row, &widths))
    }
}

/// A share in percent, with one decimal; of nothing it is 0.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    let thousandths = (part * 1000).checked_div(whole).unwrap_or(0);
    format!("{}.{}", thousandths / 10, thousandths % 10)
}

#[cfg(test)]
mod tests {
    use super::Table;

    #[test]
    fn columns_are_aligned_and_numbers_at_their_right() {
        let mut table = Table::new(&["state", ">seeds"]);
        table.row(vec!["reached".to_owned(), "7".to_owned()]);
        table.row(vec!["é".to_owned(), "1234567".to_owned()]);
        let expected = "\
| state   |   seeds |
| ------- | ------: |
| reached |       7 |
| é       | 1234567 |
";
        assert_eq!(table.to_string(), expected);
    }
}
