//! Tables that are read as tables on a wide screen, and as cards on a narrow one.

use super::html::{Element, classed, el};

/// A table under construction.
#[derive(Debug)]
pub(super) struct Table {
    caption: Element,
    headings: Vec<String>,
    body: Element,
}

impl Table {
    /// An empty table with these columns; the first names the rows.
    pub(super) fn new<'a>(caption: Element, headings: impl IntoIterator<Item = &'a str>) -> Self {
        let headings = headings.into_iter().map(str::to_owned).collect();
        Self { caption, headings, body: el("tbody").attr("role", "rowgroup") }
    }

    /// With one more row.
    pub(super) fn row(mut self, class: &str, cells: impl IntoIterator<Item = Element>) -> Self {
        let cells = cells.into_iter().zip(&self.headings).enumerate().map(|(index, (inside, heading))| match index {
            0 => el("th").attr("scope", "row").attr("role", "rowheader").child(inside),
            // A card has no column heads: each value carries its own.
            _ => el("td").attr("role", "cell").attr("data-head", heading).child(inside),
        });
        let row = classed("tr", class).attr("role", "row").children(cells);
        self.body = self.body.child(row);
        self
    }

    /// The table. The roles are those that the elements have anyway, until a style sheet makes cards of them.
    pub(super) fn finish(self) -> Element {
        let heads = self
            .headings
            .iter()
            .map(|heading| el("th").attr("scope", "col").attr("role", "columnheader").text(heading));
        let head = el("thead").attr("role", "rowgroup").child(el("tr").attr("role", "row").children(heads));
        let table = el("table").attr("role", "table").child(self.caption).child(head).child(self.body);
        // With many adapters it is wider than any screen; then it scrolls, and not the page.
        classed("div", "scroll").child(table)
    }
}
