//! The reference page, written from what the code knows.

use std::fmt::Write as _;

use crate::decide;
use crate::reason::Reason;
use crate::settings::TABLE;

/// The page below `title` and `note`: settings, reasons, and the machine's graph.
pub fn page(note: &str) -> String {
    let mut page = format!(
        "# The node syncer's settings and states\n\n{note}\n## Settings\n\nFlags take precedence over variables; a blank value \
         counts as missing. Variables one letter away from a known one are refused; all faults are listed at once.\n\n{}",
        daemon::settings::page::settings(&TABLE, false)
    );
    page += "\n## Reasons\n\nHow things are is one of these words: in the log (`reason`), in `status`, in the readiness probe's \
             message, and in the metric `sync_global_pullsecret_reason`.\n\n| reason | meaning |\n|---|---|\n";
    for reason in Reason::ALL {
        // Writing to a String cannot fail, here and below.
        let _infallible = writeln!(page, "| `{reason}` | {} |", reason.meaning());
    }
    page += "\n## Exit codes\n\n| code | meaning |\n|---|---|\n| 0 | told to stop; `ready`: it is |\n| 1 | `ready`: it is not; \
             otherwise a defect |\n| 2 | settings are wrong |\n| 5 | another syncer works on this node |\n";
    let graph = decide::graph();
    let _infallible = write!(
        page,
        "\n## The machine\n\nFound by walking through the machine. `Stop` leads from every state to the end and is left \
         out.\n\n```mermaid\n{graph}```\n"
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_knows_every_setting_and_every_reason() {
        let page = page("note\n");
        assert!(TABLE.all().iter().all(|setting| page.contains(&format!("| `--{}` |", setting.flag.unwrap()))));
        assert!(Reason::ALL.iter().all(|reason| page.contains(&format!("| `{reason}` |"))));
        assert!(page.contains("stateDiagram-v2") && page.contains("Proving --> Committing: stays up"));
        assert!(page.lines().all(|line| !line.ends_with(' ')), "no white space at the end");
    }
}
