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
    spare: u8,
}

impl Column {
    /// Returns names and words.
    pub fn text(title: &str) -> Self {
        Column { title: title.into(), unit: String::new(), text: true, spare: 0 }
    }

    /// Returns numbers of that unit.
    pub fn number(title: &str, unit: &str) -> Self {
        Column { title: title.into(), unit: unit.into(), text: false, spare: 0 }
    }

    /// Returns the same column, which is left out where the screen is too narrow for all of them: those with
    /// the highest number first.
    #[must_use]
    pub fn spare(self, spare: u8) -> Self {
        Column { spare, ..self }
    }
}

/// Returns the table as lines.
pub fn render(columns: &[Column], rows: &[Vec<String>], screen: &Screen) -> String {
    let most = columns.iter().enumerate().max_by_key(|(place, column)| (column.spare, *place));
    if let Some((place, _)) = most.filter(|(_, column)| column.spare > 0)
        && Layout::new(columns, rows, screen).width() > screen.width
    {
        let without = |cells: &[String]| [&cells[..place], &cells[place + 1..]].concat();
        let columns = [&columns[..place], &columns[place + 1..]].concat();
        let rows: Vec<Vec<String>> = rows.iter().map(|row| without(row)).collect();
        return render(&columns, &rows, screen);
    }
    let layout = Layout::new(columns, rows, screen);
    let titles: Vec<&str> = columns.iter().map(|column| column.title.as_str()).collect();
    let mut text = format!("{}\n", screen.bold(&layout.line(&titles)));
    if columns.iter().any(|column| !column.unit.is_empty()) {
        let units: Vec<&str> = columns.iter().map(|column| column.unit.as_str()).collect();
        text += &format!("{}\n", screen.dim(&layout.line(&units)));
    }
    text += &format!("{}\n", "─".repeat(layout.width().min(screen.width)));
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

    fn width(&self) -> usize {
        self.widths.iter().sum::<usize>() + GAP * self.widths.len().saturating_sub(1)
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
    fn a_narrow_screen_has_the_columns_that_matter_most() {
        let columns = [
            Column::text("scheme"),
            Column::number("throughput", "Mbit/s"),
            Column::number("used", "%").spare(1),
            Column::number("p50", "ms").spare(2),
        ];
        let rows = [["abc", "4.09", "90.1", "11.4"].map(String::from).to_vec()];
        let at = |width| {
            let text = render(&columns, &rows, &Screen { width, ..SCREEN });
            text.lines().next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(at(60), "scheme throughput used p50");
        assert_eq!(at(28), "scheme throughput used");
        assert_eq!(at(20), "scheme throughput");
        assert_eq!(at(5), "scheme throughput");
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
