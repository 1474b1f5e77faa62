//! The pages in a real browser: they are drawn, contain the expected text, and do not overflow.
//!
//! Fonts differ between machines, so a screenshot is never compared with a stored one.

use std::path::{Path, PathBuf};
use std::process::Command;

use daemon::environment::{Environment as _, ProcessEnvironment};
use serde_json::{Value, json};

use crate::fleet::{Fleet, Served, available};

/// Widths of the viewports in pixels: a desktop and a phone.
const WIDTHS: [u32; 2] = [1200, 390];

/// Reports the elements that overflow a framed page, with all details open. Elements that scroll by themselves are exempt.
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
    /// Finds the browser; `None`, with a line that says how to get one, if there is none. In CI that is a failure.
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
        // A browser that hangs must not block the test run.
        let mut command = Command::new("timeout");
        let output = command.args(["-k", "5", "90", &self.program]).args(arguments).arg(url).output().unwrap();
        assert!(output.status.success(), "{url}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A screenshot of a page, as PNG.
    fn screenshot(&self, url: &str, name: &str, options: &[&str]) -> Vec<u8> {
        let path = screenshot_folder().as_deref().unwrap_or(self.folder.path()).join(format!("{name}.png"));
        let option = format!("--screenshot={}", path.display());
        self.run(&[&[option.as_str()], options].concat(), url);
        std::fs::read(path).unwrap()
    }

    /// Checks that nothing overflows the page at any width. The measuring script runs because the page's policy is a header,
    /// which an `iframe` with `srcdoc` does not have.
    fn check_fits(&self, html: &str, name: &str) {
        let quoted = html.replace('&', "&amp;").replace('"', "&quot;");
        let frames = WIDTHS.map(|width| {
            format!("<iframe style='width:{width}px;height:2400px;border:0' srcdoc=\"{quoted}\"></iframe>")
        });
        let text = format!("<!DOCTYPE html><body>{}<script>onload = () => {{{MEASURE}}}</script>", frames.concat());
        let path = screenshot_folder().as_deref().unwrap_or(self.folder.path()).join(format!("{name}.html"));
        daemon::file::replace(&path, text.as_bytes()).unwrap();
        if screenshot_folder().is_some() {
            self.screenshot(&file(&path), &format!("{name}-frames"), &["--window-size=1640,2420"]);
        }
        let dom = self.run(&["--dump-dom"], &file(&path));
        let found = dom.split("MEASURED").nth(1).expect("the measurement").replace("&amp;", "&");
        let found: Value = serde_json::from_str(&found).unwrap();
        for (found, width) in found.as_array().unwrap().iter().zip(WIDTHS) {
            assert_eq!(found["width"], json!(width));
            assert_eq!(found["sheet"], json!(true), "the style sheet is not applied");
            assert_eq!(found["out"], json!([]), "at {width} px");
            assert!(found["scroll"].as_u64().unwrap() <= u64::from(width), "at {width} px: {found}");
        }
    }

    /// Takes screenshots of a page in both colour schemes and checks that they differ from a blank page.
    fn check(&self, url: &str, name: &str) {
        let window = "--window-size=1200,900";
        let blank = self.screenshot("about:blank", "blank", &[window]);
        let light = self.screenshot(url, name, &[window]);
        let dark = self.screenshot(url, &format!("{name}-dark"), &[window, "--blink-settings=preferredColorScheme=0"]);
        for screenshot in [&light, &dark] {
            assert_eq!(size(screenshot), (1200, 900), "{name}");
            assert!(screenshot.len() > 3 * blank.len(), "{name}: the page is almost empty");
        }
        assert_ne!(light, dark, "{name}: the dark scheme has no effect");
    }
}

/// The folder that keeps the screenshots, for a person who wants to see them.
fn screenshot_folder() -> Option<PathBuf> {
    ProcessEnvironment.text("KEEP_SCREENSHOTS").unwrap().map(PathBuf::from)
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

async fn check(browser: Browser, fleet: &Fleet, path: &str, name: &str, expected: &[&str]) {
    let served = fleet.serve().await;
    let (html, url) = (get(&served, path).await, format!("{}{path}", served.base));
    let (name, expected) = (name.to_owned(), expected.iter().map(|&text| text.to_owned()).collect::<Vec<_>>());
    let checks = tokio::task::spawn_blocking(move || {
        browser.check(&url, &name);
        browser.check_fits(&html, &name);
        let dom = browser.run(&["--dump-dom"], &url);
        for text in expected {
            assert!(dom.contains(&text), "{text:?} is not on the page");
        }
    });
    checks.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_clusters() {
    let Some(browser) = Browser::find() else { return };
    check(browser, &Fleet::new().await, "/", "clusters-0", &["No clusters yet", "curl -X POST"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn three_clusters() {
    let Some(browser) = Browser::find() else { return };
    let fleet = Fleet::new().await;
    fleet.reconciled("payments-eu", 90_000).await;
    fleet.deleting("trial-2025", 7200).await;
    fleet.failing("checkout-us", 600).await;
    check(browser, &fleet, "/", "clusters-3", &["payments-eu", "Zone<wbr>Not<wbr>Found", "not reconciled"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_clusters() {
    let Some(browser) = Browser::find() else { return };
    let fleet = Fleet::new().await;
    for index in 0..500_i64 {
        let (name, age) =
            (format!("cluster-{index:03}-of-a-team-with-a-name-as-long-as-possible"), 50_000 - index * 60);
        match index % 25 {
            20 => fleet.failing(&name, age).await,
            21 => fleet.deleting(&name, age).await,
            22 => fleet.cluster(&name, age).await,
            _ => fleet.reconciled(&name, age).await,
        };
    }
    check(browser, &fleet, "/", "clusters-500", &["1 to 100 of 500", "Older"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_cluster() {
    let Some(browser) = Browser::find() else { return };
    let fleet = Fleet::new().await;
    let id = fleet.failing("checkout-us", 600).await;
    fleet.create("NodePool", Some(&id), json!({ "name": "workers", "spec": {} }), 300).await;
    let long = "x".repeat(300);
    fleet.report(&id, available("hypershift", 2, "False", &long, &long), 5).await;
    check(browser, &fleet, &format!("/ui/clusters/{id}"), "cluster", &["Not reconciled", "Timeline", "workers"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_search_and_the_endpoints() {
    let Some(browser) = Browser::find() else { return };
    let fleet = Fleet::new().await;
    let _one = fleet.reconciled("payments-eu", 90_000).await;
    let search = form_urlencoded::Serializer::new("/?".to_owned())
        .append_pair("search", "labels.region = 'eu' and name ~ 'payments' or status.conditions.Reconciled = 'False'")
        .finish();
    check(browser, &fleet, &search, "search", &["Invalid search"]).await;
    let browser = Browser::find().unwrap();
    check(browser, &fleet, "/api/hyperfleet/v1/openapi.html", "endpoints", &["force-delete"]).await;
}
