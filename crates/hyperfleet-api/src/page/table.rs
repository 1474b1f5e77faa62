//! Tables, which the style sheet shows as cards on a narrow screen.

use maud::{Markup, html};

/// A table under construction.
#[derive(Debug)]
pub(super) struct Table {
    caption: Markup,
    headings: Vec<String>,
    rows: Vec<Markup>,
}

impl Table {
    /// An empty table with these columns; the first column holds the row headers.
    pub(super) fn new<'a>(caption: Markup, headings: impl IntoIterator<Item = &'a str>) -> Self {
        let headings = headings.into_iter().map(str::to_owned).collect();
        Self { caption, headings, rows: Vec::new() }
    }

    /// Adds a row with one cell per column.
    pub(super) fn row(mut self, class: &str, cells: impl IntoIterator<Item = Markup>) -> Self {
        let cells = cells.into_iter().zip(&self.headings).enumerate();
        let row = html! {
            tr class=(class) role="row" {
                @for (index, (content, heading)) in cells {
                    @if index == 0 {
                        th scope="row" role="rowheader" { (content) }
                    } @else {
                        // A card has no column headers, so each cell carries its own.
                        td role="cell" data-head=(heading) { (content) }
                    }
                }
            }
        };
        self.rows.push(row);
        self
    }

    /// Renders the table.
    ///
    /// The roles repeat what the elements mean by default: the style sheet turns rows into cards with `display: grid`, and
    /// browsers then drop the default roles. The surrounding element scrolls when many adapters make the table wide.
    pub(super) fn finish(&self) -> Markup {
        html! {
            div class="scroll" {
                table role="table" {
                    (self.caption)
                    thead role="rowgroup" {
                        tr role="row" {
                            @for heading in &self.headings {
                                th scope="col" role="columnheader" { (heading) }
                            }
                        }
                    }
                    tbody role="rowgroup" {
                        @for row in &self.rows { (row) }
                    }
                }
            }
        }
    }
}
