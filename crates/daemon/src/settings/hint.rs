//! Suggests names that were probably meant, and recognises the variables that Kubernetes sets by itself.

use super::row::Table;
use crate::environment::Environment;

/// The known name that is one edit away from an unknown one: a letter added, left out, replaced or swapped with the next.
pub fn one_edit<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known.into_iter().find(|known| strsim::osa_distance(unknown, known) == 1)
}

/// The known name that is most like an unknown one, if one is alike.
pub fn similar<'a>(unknown: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let distances = known.into_iter().map(|known| (strsim::osa_distance(unknown, known), known));
    let (distance, known) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= (unknown.chars().count() / 4).clamp(1, 3)).then_some(known)
}

/// The known key that is most like an unknown one: by its whole path, else by its last segment where only one key has it.
pub fn similar_key<'a>(unknown: &str, known: &[&'a str]) -> Option<&'a str> {
    let last = |path: &str| path.rsplit('.').next().unwrap_or_default().to_owned();
    similar(unknown, known.iter().copied()).or_else(|| {
        let mut same = known.iter().filter(|path| last(path) == last(unknown));
        same.next().copied().filter(|_| same.next().is_none())
    })
}

/// Returns `; did you mean NAME?`, or nothing.
pub fn did_you_mean(name: Option<&str>) -> String {
    name.map(|name| format!("; did you mean {name}?")).unwrap_or_default()
}

/// A fault for every variable that is one edit away from one of the table's and is not known itself.
pub fn misspelt_variables(table: &Table, environment: &impl Environment) -> Vec<String> {
    let known = table.variables();
    let is_of_family = |name: &&str| table.families.iter().any(|family| name.starts_with(family));
    let families: Vec<&str> = known.iter().map(String::as_str).filter(is_of_family).collect();
    let fault = |name: String| {
        let value = environment.text(&name).ok().flatten().unwrap_or_default();
        if known.contains(&name) || is_of_a_service(&name, &value) {
            return None;
        }
        let meant = one_edit(&name, families.iter().copied())?;
        Some(format!("{name}: unknown variable; did you mean {meant}?"))
    };
    environment.names().into_iter().filter_map(fault).collect()
}

/// Returns true for a variable that Kubernetes sets for a Service of the namespace, such as `API_SERVICE_HOST`,
/// `API_PORT=tcp://10.0.0.1:80` or `API_PORT_80_TCP_ADDR`: the Service's name chooses the variable's.
pub fn is_of_a_service(name: &str, value: &str) -> bool {
    let is_numbered = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || name.split("_PORT_").skip(1).any(is_numbered)
        || (name.ends_with("_PORT") && ["tcp://", "udp://", "sctp://"].iter().any(|scheme| value.starts_with(scheme)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_edit_is_a_letter_added_left_out_replaced_or_swapped() {
        for unknown in ["X_PRT", "X_POORT", "X_PART", "X_PROT"] {
            assert_eq!(one_edit(unknown, ["X_HOST", "X_PORT"]), Some("X_PORT"), "{unknown}");
        }
        assert_eq!(one_edit("X_PRTO", ["X_PORT"]), None);
        assert_eq!(one_edit("X_PORT", ["X_PORT"]), None);
    }

    #[test]
    fn keys_are_found_by_their_path_or_their_last_segment() {
        let known = ["server.port", "server.timeouts.read", "log.level", "server.host", "health.host"];
        assert_eq!(similar_key("server.prot", &known), Some("server.port"));
        assert_eq!(similar_key("read", &known), Some("server.timeouts.read"));
        assert_eq!(similar_key("host", &known), None, "two keys have it");
        assert_eq!(similar_key("nonsense", &known), None);
    }

    #[test]
    fn kubernetes_variables_of_services_are_recognised() {
        for (name, value) in [
            ("HYPERFLEET_SERVER_SERVICE_HOST", "10.0.0.1"),
            ("HYPERFLEET_SERVER_SERVICE_PORT", "80"),
            ("HYPERFLEET_SERVER_SERVICE_PORT_HTTP", "80"),
            ("HYPERFLEET_SERVER_PORT", "tcp://10.0.0.1:80"),
            ("HYPERFLEET_SERVER_PORT_80_TCP", "tcp://10.0.0.1:80"),
            ("HYPERFLEET_SERVER_PORT_80_TCP_ADDR", "10.0.0.1"),
        ] {
            assert!(is_of_a_service(name, value), "{name}");
        }
        assert!(!is_of_a_service("HYPERFLEET_SERVER_PORT", "8001"));
        assert!(!is_of_a_service("HYPERFLEET_SERVER_PROT", "8001"));
    }
}
