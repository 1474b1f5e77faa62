//! The pages in a real browser: they are drawn, they hold what they should, and nothing sticks out of them.
//!
//! Fonts differ between machines, so no picture is compared with another one of the same page.

use std::path::{Path, PathBuf};
use std::process::Command;

use daemon::environment::{Environment as _, ProcessEnvironment};
use serde_json::{Value, json};

use crate::fleet::{Fleet, Served, available};

/// The widths at which pages are looked at: a desktop and a phone.
const WIDTHS: [u32; 2] = [1200, 390];

/// Reports what sticks out of the page in a frame, with all details open. What scrolls within itself may.
const MEASURE: &str = "
  const found = [...document.querySelectorAll('iframe')].map(frame => {
    const inner = frame.contentDocument, root = inner.documentElement, width = root.clientWidth;
    inner.querySelectorAll('details').forEach(one => one.open = true);
    const out = [...inner.querySelectorAll('body *')].filter(one => !one.closest('pre') || one.tagName === 'PRE')
      .filter(one => one.getBoundingClientRect().right > width + 1)
      .map(one => one.tagName + '.' + one.className + ': ' + one.textContent.slice(0, 40)).slice(0, 5);
    return { width, scroll: root.scrollWidth, out, sheet: getComputedStyle(inner.body).marginTop === '0px' };
  });
  document.title = 'MEASURED' + JSON.stringify(found) + 'MEASURED';";

struct Browser {
    program: String,
    folder: tempfile::TempDir,
}

impl Browser {
    /// `None`, with a line that says so, where there is none; in CI that is a failure.
    fn find() -> Option<Self> {
        let variable = |name| ProcessEnvironment.text(name).unwrap();
        let Some(program) = variable("REAL_CHROMIUM") else {
            let missing = "skipped: no REAL_CHROMIUM; get it: eval \"$(hack/real-parts/chromium.sh get)\"";
            assert_ne!(variable("CI").as_deref(), Some("true"), "{missing}");
            eprintln!("{missing}");
            return None;
        };
        Some(Self { program, folder: tempfile::tempdir().unwrap() })
    }

    fn run(&self, arguments: &[&str], url: &str) -> String {
        // A browser that hangs must not hang the tests.
        let mut command = Command::new("timeout");
        let output = command.args(["-k", "5", "90", &self.program]).args(arguments).arg(url).output().unwrap();
        assert!(output.status.success(), "{url}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A picture of a page, as PNG.
    fn picture(&self, url: &str, name: &str, options: &[&str]) -> Vec<u8> {
        let path = kept().as_deref().unwrap_or(self.folder.path()).join(format!("{name}.png"));
        let screenshot = format!("--screenshot={}", path.display());
        self.run(&[&[screenshot.as_str()], options].concat(), url);
        std::fs::read(path).unwrap()
    }

    /// Nothing sticks out of that page at any width. Its scripts are ours, and only there as the policy is a header.
    fn check_fits(&self, html: &str, name: &str) {
        let quoted = html.replace('&', "&amp;").replace('"', "&quot;");
        let frames = WIDTHS.map(|width| {
            format!("<iframe style='width:{width}px;height:2400px;border:0' srcdoc=\"{quoted}\"></iframe>")
        });
        let text = format!("<!DOCTYPE html><body>{}<script>onload = () => {{{MEASURE}}}</script>", frames.concat());
        let path = kept().as_deref().unwrap_or(self.folder.path()).join(format!("{name}.html"));
        daemon::file::replace(&path, text.as_bytes()).unwrap();
        if kept().is_some() {
            self.picture(&file(&path), &format!("{name}-frames"), &["--window-size=1640,2420"]);
        }
        let dom = self.run(&["--dump-dom"], &file(&path));
        let found = dom.split("MEASURED").nth(1).expect("the measurement").replace("&amp;", "&");
        let found: Value = serde_json::from_str(&found).unwrap();
        for (found, width) in found.as_array().unwrap().iter().zip(WIDTHS) {
            assert_eq!(found["width"], json!(width));
            assert_eq!(found["sheet"], json!(true), "the style sheet is not in force");
            assert_eq!(found["out"], json!([]), "at {width} px");
            assert!(found["scroll"].as_u64().unwrap() <= u64::from(width), "at {width} px: {found}");
        }
    }

    /// Draws a page, in light and dark, and checks that it fits.
    fn check(&self, url: &str, name: &str) {
        let window = "--window-size=1200,900";
        let blank = self.picture("about:blank", "blank", &[window]);
        let light = self.picture(url, name, &[window]);
        let dark = self.picture(url, &format!("{name}-dark"), &[window, "--blink-settings=preferredColorScheme=0"]);
        for picture in [&light, &dark] {
            assert_eq!(size(picture), (1200, 900), "{name}");
            assert!(picture.len() > 3 * blank.len(), "{name}: next to nothing is drawn");
        }
        assert_ne!(light, dark, "{name}: dark is not dark");
    }
}

/// Whoever wants to look at the pictures says where they are to stay.
fn kept() -> Option<PathBuf> {
    ProcessEnvironment.text("KEEP_PICTURES").unwrap().map(PathBuf::from)
}

fn file(path: &Path) -> String {
    format!("file://{}", path.display())
}

/// The width and height of a PNG.
fn size(png: &[u8]) -> (u32, u32) {
    assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

async fn get(served: &Served, path: &str) -> String {
    reqwest::get(format!("{}{path}", served.base)).await.unwrap().text().await.unwrap()
}

async fn look(browser: Browser, fleet: &Fleet, path: &str, name: &str, expected: &[&str]) {
    let served = fleet.serve().await;
    let (html, url) = (get(&served, path).await, format!("{}{path}", served.base));
    let (name, expected) = (name.to_owned(), expected.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
    let looked = tokio::task::spawn_blocking(move || {
        browser.check(&url, &name);
        browser.check_fits(&html, &name);
        let dom = browser.run(&["--dump-dom"], &url);
        for text in expected {
            assert!(dom.contains(&text), "{text:?} is not on the page");
        }
    });
    looked.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_clusters() {
    let Some(browser) = Browser::find() else { return };
    look(browser, &Fleet::new().await, "/", "clusters-0", &["No clusters yet", "curl -X POST"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_clusters() {
    let Some(browser) = Browser::find() else { return };
    let fleet = Fleet::new().await;
    fleet.well("payments-eu", 90_000).await;
    fleet.leaving("trial-2025", 7200).await;
    fleet.ill("checkout-us", 600).await;
    look(browser, &fleet, "/", "clusters-3", &["payments-eu", "Zone<wbr>Not<wbr>Found", "not reconciled"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_clusters() {
    let Some(browser) = Browser::find() else { return };
    let fleet = Fleet::new().await;
    for index in 0..500_i64 {
        let (name, age) =
            (format!("cluster-{index:03}-of-a-team-with-a-name-as-long-as-possible"), 50_000 - index * 60);
        match index % 25 {
            20 => fleet.ill(&name, age).await,
            21 => fleet.leaving(&name, age).await,
            22 => fleet.cluster(&name, age).await,
            _ => fleet.well(&name, age).await,
        };
    }
    look(browser, &fleet, "/", "clusters-500", &["1 to 100 of 500", "Older"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_cluster() {
    let Some(browser) = Browser::find() else { return };
    let fleet = Fleet::new().await;
    let id = fleet.ill("checkout-us", 600).await;
    fleet.make("NodePool", Some(&id), json!({ "name": "workers", "spec": {} }), 300).await;
    let long = "x".repeat(300);
    fleet.tell(&id, available("hypershift", 2, "False", &long, &long), 5).await;
    look(browser, &fleet, &format!("/ui/clusters/{id}"), "cluster", &["Not reconciled", "Timeline", "workers"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_search_and_the_endpoints() {
    let Some(browser) = Browser::find() else { return };
    let fleet = Fleet::new().await;
    let _one = fleet.well("payments-eu", 90_000).await;
    let search = form_urlencoded::Serializer::new("/?".to_owned())
        .append_pair("search", "labels.region = 'eu' and name ~ 'payments' or status.conditions.Reconciled = 'False'")
        .finish();
    look(browser, &fleet, &search, "search", &["This search cannot be read"]).await;
    let browser = Browser::find().unwrap();
    look(browser, &fleet, "/api/hyperfleet/v1/openapi.html", "endpoints", &["force-delete"]).await;
}
