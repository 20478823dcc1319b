//! Tables for people: a heading in two lines (what, unit), numbers to the right, names to the left. Where a
//! table is too wide for the screen, its last column wraps if it holds words.

use unicode_width::UnicodeWidthStr;

use super::Screen;

/// Blanks between columns.
const GAP: usize = 2;

/// A column of words is never wrapped to fewer columns than this.
const NARROWEST: usize = 24;

/// One column.
#[derive(Clone, Debug)]
pub struct Column {
    title: String,
    unit: String,
    text: bool,
}

impl Column {
    /// Returns names and words.
    pub fn text(title: &str) -> Self {
        Column { title: title.into(), unit: String::new(), text: true }
    }

    /// Returns numbers of that unit.
    pub fn number(title: &str, unit: &str) -> Self {
        Column { title: title.into(), unit: unit.into(), text: false }
    }
}

/// Returns the table as lines.
pub fn render(columns: &[Column], rows: &[Vec<String>], screen: &Screen) -> String {
    let layout = Layout::new(columns, rows, screen);
    let titles: Vec<&str> = columns.iter().map(|column| column.title.as_str()).collect();
    let mut text = format!("{}\n", screen.bold(&layout.line(&titles)));
    if columns.iter().any(|column| !column.unit.is_empty()) {
        let units: Vec<&str> = columns.iter().map(|column| column.unit.as_str()).collect();
        text += &format!("{}\n", screen.dim(&layout.line(&units)));
    }
    let whole = layout.widths.iter().sum::<usize>() + GAP * layout.widths.len().saturating_sub(1);
    text += &format!("{}\n", "─".repeat(whole.min(screen.width)));
    text + &layout.body(rows)
}

/// Returns the same without a heading.
pub fn plain(columns: &[Column], rows: &[Vec<String>], screen: &Screen) -> String {
    Layout::new(columns, rows, screen).body(rows)
}

/// Where columns stand.
struct Layout<'a> {
    columns: &'a [Column],
    widths: Vec<usize>,
}

impl<'a> Layout<'a> {
    fn new(columns: &'a [Column], rows: &[Vec<String>], screen: &Screen) -> Self {
        let mut widths: Vec<usize> = columns
            .iter()
            .enumerate()
            .map(|(i, column)| {
                let cells = rows.iter().filter_map(|row| row.get(i)).map(String::as_str);
                let all = cells.chain([column.title.as_str(), column.unit.as_str()]);
                all.map(columns_of).max().unwrap_or(0)
            })
            .collect();
        if let (Some((last, before)), Some(column)) = (widths.split_last_mut(), columns.last())
            && column.text
        {
            let taken: usize = before.iter().map(|width| width + GAP).sum();
            *last = (*last).min(screen.width.saturating_sub(taken).max(NARROWEST));
        }
        Layout { columns, widths }
    }

    fn line(&self, cells: &[&str]) -> String {
        let padded = cells.iter().zip(self.columns).zip(&self.widths).map(|((cell, column), &width)| {
            let blanks = " ".repeat(width.saturating_sub(columns_of(cell)));
            if column.text { format!("{cell}{blanks}") } else { format!("{blanks}{cell}") }
        });
        padded.collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_string()
    }

    fn body(&self, rows: &[Vec<String>]) -> String {
        let mut text = String::new();
        for row in rows {
            let mut cells: Vec<&str> = row.iter().map(String::as_str).collect();
            let last = cells.pop().unwrap_or_default();
            let wrapped = match self.columns.last() {
                Some(column) if column.text => wrap(last, self.widths.last().copied().unwrap_or(NARROWEST)),
                _ => vec![last.to_string()],
            };
            for (i, part) in wrapped.iter().enumerate() {
                let before: Vec<&str> = if i == 0 { cells.clone() } else { vec![""; cells.len()] };
                text += &format!("{}\n", self.line(&[before.as_slice(), &[part]].concat()));
            }
        }
        text
    }
}

/// Columns that `text` takes on a screen.
fn columns_of(text: &str) -> usize {
    text.width()
}

/// Lines of at most `width`, broken between words; a word that is longer has a line of its own.
fn wrap(text: &str, width: usize) -> Vec<String> {
    if columns_of(text) <= width {
        return vec![text.to_string()];
    }
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if columns_of(line) + 1 + columns_of(word) <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_string());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Screen = Screen { width: 60, terminal: false, colour: false };

    #[test]
    fn numbers_stand_to_the_right_below_their_unit() {
        let columns =
            [Column::text("scheme"), Column::number("throughput", "Mbit/s"), Column::number("p95", "ms")];
        let rows =
            [["abc", "4.09", "114"], ["cubic+codel", "13.3", "–"]].map(|row| row.map(String::from).to_vec());
        insta::assert_snapshot!(render(&columns, &rows, &SCREEN), @r"
        scheme       throughput  p95
                         Mbit/s   ms
        ────────────────────────────
        abc                4.09  114
        cubic+codel        13.3    –
        ");
    }

    #[test]
    fn words_in_the_last_column_wrap_at_the_screens_edge() {
        let columns = [Column::text("option"), Column::text("default"), Column::text("meaning")];
        let meaning = "Whether to send ECT(0) and treat CE as a loss, as a router may ask for it.";
        let rows = [["ecn", "false", meaning], ["beta", "0.5", "What is left."]];
        let rows = rows.map(|row| row.map(String::from).to_vec());
        insta::assert_snapshot!(render(&columns, &rows, &SCREEN), @r"
        option  default  meaning
        ────────────────────────────────────────────────────────────
        ecn     false    Whether to send ECT(0) and treat CE as a
                         loss, as a router may ask for it.
        beta    0.5      What is left.
        ");
    }
}
