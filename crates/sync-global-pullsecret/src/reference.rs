//! Renders the reference page.

use std::fmt::Write as _;

use crate::decide;
use crate::reason::Reason;
use crate::settings::TABLE;

/// Returns the page with this note: settings, reasons, exit codes, and the graph of the state machine.
pub fn page(note: &str) -> String {
    let mut page = format!(
        "# The node syncer's settings and states\n\n{note}\n## Settings\n\nFlags take precedence over environment variables; a blank value \
         counts as missing. Variables one letter away from a known one are refused; all faults are listed at once.\n\n{}",
        daemon::settings::page::settings(&TABLE, false)
    );
    page += "\n## Reasons\n\nThe state has one of these reasons: in the log (`reason`), in `status`, in the readiness probe's \
             message, and in the metric `sync_global_pullsecret_reason`.\n\n| reason | meaning |\n|---|---|\n";
    for reason in Reason::ALL {
        // Writing to a String cannot fail, here and below.
        let _infallible = writeln!(page, "| `{reason}` | {} |", reason.meaning());
    }
    page += "\n## Exit codes\n\n| code | meaning |\n|---|---|\n| 0 | stopped; `ready`: ready |\n| 1 | `ready`: not ready; \
             otherwise a defect |\n| 2 | invalid settings |\n| 5 | another syncer runs on this node |\n";
    let graph = decide::graph();
    let _infallible = write!(
        page,
        "\n## State machine\n\nFound by walking through the machine. `Stop`, which ends every state, is left \
         out.\n\n```mermaid\n{graph}```\n"
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_lists_every_setting_and_every_reason() {
        let page = page("note\n");
        assert!(TABLE.all().iter().all(|setting| page.contains(&format!("| `--{}` |", setting.flag.unwrap()))));
        assert!(Reason::ALL.iter().all(|reason| page.contains(&format!("| `{reason}` |"))));
        assert!(page.contains("stateDiagram-v2") && page.contains("Verifying --> Committing: stays up"));
        assert!(page.lines().all(|line| !line.ends_with(' ')), "no white space at the end");
    }
}
