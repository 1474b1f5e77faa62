//! Settings of traces, the same for every program: OpenTelemetry's variables, and HyperFleet's switch.
//!
//! <https://opentelemetry.io/docs/specs/otel/protocol/exporter/> defines the variables' meanings.

use std::path::PathBuf;
use std::time::Duration;

use http::uri::{Scheme, Uri};
use http::{HeaderName, HeaderValue};
use secrecy::{ExposeSecret as _, SecretString};

use super::declare::{Section as _, Setting};
use super::load::{Given, load};
use super::row::{Kind, Row, Table};
use crate::environment::Environment;

/// Path of traces below the address of a collector.
const PATH: &str = "/v1/traces";

crate::settings! {
    /// Traces, which are exported over OTLP.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub struct Tracing {
        /// Export traces if an endpoint is set; `false` exports none
        pub enabled: bool =
            Row::at("tracing.enabled").variable("HYPERFLEET_TRACING_ENABLED").or_keys(&["tracing_enabled"]).default("true"),
        /// Name of the service in traces
        #[serde(default)]
        pub service_name: Option<String> = Row::at("tracing.service_name")
            .variable("OTEL_SERVICE_NAME")
            .placeholder("NAME")
            .unset("the program's name"),
        /// Address of the collector that traces are sent to, `http` or `https`, to which `/v1/traces` is added
        #[serde(default)]
        pub endpoint: Option<String> = Row::at("tracing.endpoint")
            .variable("OTEL_EXPORTER_OTLP_ENDPOINT")
            .placeholder("URL")
            .unset("none: no traces"),
        /// The same with its path; preferred to the address without
        #[serde(default)]
        pub traces_endpoint: Option<String> = Row::at("tracing.traces_endpoint")
            .variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
            .placeholder("URL"),
        /// Protocol; gRPC and JSON are refused
        pub protocol: Protocol = Row::at("tracing.protocol")
            .variable("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
            .or_variables(&["OTEL_EXPORTER_OTLP_PROTOCOL"])
            .default("http/protobuf"),
        /// Headers of each request to the collector, `NAME=VALUE,…`, values percent-encoded; never logged
        #[serde(default)]
        pub headers: Option<Headers> = Row::at("tracing.headers")
            .variable("OTEL_EXPORTER_OTLP_TRACES_HEADERS")
            .or_variables(&["OTEL_EXPORTER_OTLP_HEADERS"]),
        /// Certificate authorities of the collector, PEM
        #[serde(default)]
        pub certificate: Option<PathBuf> = Row::at("tracing.certificate")
            .variable("OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE")
            .or_variables(&["OTEL_EXPORTER_OTLP_CERTIFICATE"])
            .placeholder("FILE")
            .unset("the system's"),
        /// Maximum time of a request to the collector, in milliseconds
        pub timeout: u32 = Row::at("tracing.timeout")
            .variable("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT")
            .or_variables(&["OTEL_EXPORTER_OTLP_TIMEOUT"])
            .default("10000")
            .within("1", "600000"),
        /// Traces that are recorded; with `parentbased_…` the caller's decision holds, and the rest of the name where there is
        /// no caller
        pub sampler: Sampler =
            Row::at("tracing.sampler").variable("OTEL_TRACES_SAMPLER").default("parentbased_traceidratio"),
        /// Share of traces that `traceidratio` records, from 0 to 1
        pub sampler_arg: String = Row::at("tracing.sampler_arg")
            .variable("OTEL_TRACES_SAMPLER_ARG")
            .placeholder("SHARE")
            .default("1.0"),
    }
}

crate::choices! {
    /// Protocol of traces.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Protocol {
        /// OTLP over HTTP, in protobuf's binary form.
        HttpProtobuf = "http/protobuf",
    }
}

crate::choices! {
    /// Rule by which traces are recorded.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum Sampler {
        /// Every trace.
        AlwaysOn = "always_on",
        /// None.
        AlwaysOff = "always_off",
        /// A share of the traces.
        Ratio = "traceidratio",
        /// The decision of the caller; every trace that begins here.
        ParentOrOn = "parentbased_always_on",
        /// The decision of the caller; no trace that begins here.
        ParentOrOff = "parentbased_always_off",
        /// The decision of the caller; a share of the traces that begin here.
        ParentOrRatio = "parentbased_traceidratio",
    }
}

/// Headers as they are given, which may hold a credential.
#[derive(Clone, Debug, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Headers(#[cfg_attr(feature = "schema", schemars(with = "String"))] SecretString);

impl Setting for Headers {
    const KIND: Kind = Kind::Secret;
}

crate::settings! {
    /// Traces alone.
    struct Alone {
        /// Traces
        pub tracing: Tracing,
    }
}

/// Destination and selection of traces.
#[derive(Clone, Debug)]
pub struct Export {
    /// Address that batches of spans are posted to.
    pub url: Uri,
    /// Headers of each request, marked as sensitive.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// File of the collector's certificate authorities; `None` for the system's.
    pub certificate: Option<PathBuf>,
    /// Maximum time of a request.
    pub timeout: Duration,
    /// Rule by which traces are recorded.
    pub sampler: Sampler,
    /// Share of traces that a rule with a share records, from 0 to 1.
    pub share: f64,
    /// Name of the service, if one is given.
    pub service_name: Option<String>,
}

// === impl Tracing ===

impl Tracing {
    /// Returns the export that the variables alone ask for, for programs without settings of traces.
    ///
    /// # Errors
    ///
    /// Every fault, as a line for a message.
    pub fn of_environment(environment: &impl Environment) -> Result<Option<Export>, Vec<String>> {
        const TABLE: Table = Table::of(Alone::ROWS);
        load::<Alone>(&TABLE, environment, &Given::default()).then(|alone| alone.tracing.export())
    }

    /// The contradictions and malformed values, each as a line for a message.
    pub fn faults(&self) -> Vec<String> {
        self.export().err().unwrap_or_default()
    }

    /// Returns the export; `None` if nothing is exported.
    ///
    /// # Errors
    ///
    /// Every fault, without its value: addresses and headers may hold credentials.
    pub fn export(&self) -> Result<Option<Export>, Vec<String>> {
        let mut faults = Vec::new();
        let base = self.endpoint.as_deref().map(|text| text.trim_end_matches('/').to_owned() + PATH);
        let base = base.and_then(|text| checked("OTEL_EXPORTER_OTLP_ENDPOINT", url(&text), &mut faults));
        let own = self.traces_endpoint.as_deref();
        let own = own.and_then(|text| checked("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", url(text), &mut faults));
        let given = self.headers.as_ref().map_or("", |headers| headers.0.expose_secret());
        let headers =
            checked("OTEL_EXPORTER_OTLP_TRACES_HEADERS or OTEL_EXPORTER_OTLP_HEADERS", headers(given), &mut faults);
        let share = checked("OTEL_TRACES_SAMPLER_ARG", share(&self.sampler_arg), &mut faults);
        let url = own.or(base).filter(|_| self.enabled);
        match (url, headers, share) {
            (url, Some(headers), Some(share)) if faults.is_empty() => Ok(url.map(|url| Export {
                url,
                headers,
                certificate: self.certificate.clone(),
                timeout: Duration::from_millis(self.timeout.into()),
                sampler: self.sampler,
                share,
                service_name: self.service_name.clone(),
            })),
            _ => Err(faults),
        }
    }
}

fn checked<T>(name: &str, result: Result<T, &'static str>, faults: &mut Vec<String>) -> Option<T> {
    result.map_err(|fault| faults.push(format!("{name}: {fault}"))).ok()
}

fn url(text: &str) -> Result<Uri, &'static str> {
    let malformed = "must be an address such as http://collector:4318, with http or https";
    let url: Uri = text.parse().map_err(|_quotes| malformed)?;
    let is_http = url.scheme() == Some(&Scheme::HTTP) || url.scheme() == Some(&Scheme::HTTPS);
    let host = url.authority().map(http::uri::Authority::as_str).unwrap_or_default();
    if host.contains('@') {
        return Err("must hold no credentials; give them in OTEL_EXPORTER_OTLP_HEADERS");
    }
    if url.query().is_some() {
        return Err("must have no query; give what the collector requires in OTEL_EXPORTER_OTLP_HEADERS");
    }
    if is_http && !host.is_empty() { Ok(url) } else { Err(malformed) }
}

/// Pairs as the variables have them: <https://www.w3.org/TR/baggage/#header-content>, without properties.
fn headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, &'static str> {
    let header = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let mut value = HeaderValue::from_bytes(&decoded(value.trim())?).ok()?;
        value.set_sensitive(true);
        Some((name.trim().parse().ok()?, value))
    };
    let pairs = text.split(',').filter(|pair| !pair.trim().is_empty());
    pairs.map(|pair| header(pair).ok_or("must be NAME=VALUE,… with values that are percent-encoded")).collect()
}

/// Decodes `%20` and the like; `None` if a percent sign begins nothing.
fn decoded(text: &str) -> Option<Vec<u8>> {
    let mut parts = text.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at_checked(2)?;
        let is_hex = code.bytes().all(|digit| digit.is_ascii_hexdigit());
        bytes.push(u8::from_str_radix(code, 16).ok().filter(|_| is_hex)?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    Some(bytes)
}

fn share(text: &str) -> Result<f64, &'static str> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or("must be a number from 0 to 1")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rstest::rstest;

    use super::*;

    const MALFORMED: &str = "must be an address such as http://collector:4318, with http or https";

    fn export(variables: &[(&str, &str)]) -> Result<Option<Export>, Vec<String>> {
        let environment: BTreeMap<&str, &str> = variables.iter().copied().collect();
        Tracing::of_environment(&environment)
    }

    #[rstest]
    #[case::nothing(&[], None)]
    #[case::base(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318")], Some("http://c:4318/v1/traces"))]
    #[case::base_with_a_path(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c/otlp/")], Some("https://c/otlp/v1/traces"))]
    #[case::of_traces(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:4318/mine")], Some("http://c:4318/mine"))]
    #[case::both(
        &[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://t/"), ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c")],
        Some("http://t/")
    )]
    #[case::switched_off(
        &[("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318"), ("HYPERFLEET_TRACING_ENABLED", "false")],
        None
    )]
    #[case::blank(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")], None)]
    fn the_endpoint_switches_traces_on(#[case] variables: &[(&str, &str)], #[case] url: Option<&str>) {
        let export = export(variables).unwrap();
        assert_eq!(export.map(|export| export.url.to_string()).as_deref(), url);
    }

    #[rstest]
    #[case("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", MALFORMED)]
    #[case("OTEL_EXPORTER_OTLP_ENDPOINT", "grpc://c:4317", MALFORMED)]
    #[case("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c:4318/ x", MALFORMED)]
    #[case(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "http://u:hunter2@c",
        "must hold no credentials; give them in OTEL_EXPORTER_OTLP_HEADERS"
    )]
    #[case(
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "http://c/?api_key=hunter2",
        "must have no query; give what the collector requires in OTEL_EXPORTER_OTLP_HEADERS"
    )]
    #[case("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "must be one of http/protobuf")]
    #[case("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "must be one of http/protobuf")]
    #[case("OTEL_EXPORTER_OTLP_TIMEOUT", "0", "must be a whole number from 1 to 600000")]
    #[case("OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "10s", "must be a whole number from 1 to 600000")]
    #[case("OTEL_TRACES_SAMPLER_ARG", "1.5", "must be a number from 0 to 1")]
    #[case("OTEL_TRACES_SAMPLER_ARG", "NaN", "must be a number from 0 to 1")]
    #[case("HYPERFLEET_TRACING_ENABLED", "yes", "must be true or false")]
    fn wrong_values_are_refused_with_the_variable(#[case] name: &str, #[case] value: &str, #[case] fault: &str) {
        let faults = export(&[(name, value)]).unwrap_err();
        assert_eq!(faults, [format!("{name}: {fault}")]);
    }

    #[rstest]
    #[case("jaeger_remote")]
    #[case("traceidratio:0.5")]
    fn unknown_samplers_are_refused(#[case] name: &str) {
        let faults = export(&[("OTEL_TRACES_SAMPLER", name)]).unwrap_err();
        assert!(faults[0].starts_with("OTEL_TRACES_SAMPLER: must be one of always_on, always_off,"), "{faults:?}");
    }

    #[rstest]
    #[case("always_on", Sampler::AlwaysOn)]
    #[case("always_off", Sampler::AlwaysOff)]
    #[case("traceidratio", Sampler::Ratio)]
    #[case("parentbased_always_on", Sampler::ParentOrOn)]
    #[case("parentbased_always_off", Sampler::ParentOrOff)]
    #[case("parentbased_traceidratio", Sampler::ParentOrRatio)]
    #[case("", Sampler::ParentOrRatio)]
    fn samplers_have_opentelemetrys_names(#[case] name: &str, #[case] sampler: Sampler) {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
            ("OTEL_TRACES_SAMPLER", name),
            ("OTEL_TRACES_SAMPLER_ARG", "0.25"),
        ];
        let export = export(&variables).unwrap().unwrap();
        assert_eq!((export.sampler, export.share), (sampler, 0.25));
    }

    #[test]
    fn headers_are_decoded_and_never_shown() {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Basic%20hunter2, x-a = b ,"),
        ];
        let export = export(&variables).unwrap().unwrap();
        let headers: Vec<_> =
            export.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(headers, [("authorization", "Basic hunter2"), ("x-a", "b")]);
        assert!(!format!("{export:?}").contains("hunter2"));
    }

    #[rstest]
    #[case("hunter2")]
    #[case("a b=hunter2")]
    #[case("a=%zzhunter2")]
    #[case("a=%+1hunter2")]
    #[case("a=%0Ahunter2")]
    #[case("a=hunter2%é")]
    fn malformed_headers_are_refused_without_their_value(#[case] headers: &str) {
        let faults = export(&[("OTEL_EXPORTER_OTLP_HEADERS", headers)]).unwrap_err();
        assert_eq!(
            faults,
            [
                "OTEL_EXPORTER_OTLP_TRACES_HEADERS or OTEL_EXPORTER_OTLP_HEADERS: must be NAME=VALUE,… with values that are percent-encoded"
            ]
        );
    }
}
