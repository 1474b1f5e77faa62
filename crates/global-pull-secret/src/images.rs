//! The images of a hosted cluster's Pods, by repository: a key knows neither tags nor digests.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use docker_config::lookup::Image;
use jiff::Timestamp;

/// Maximum number of repositories; an admin can name as many as there is room for Pods.
const MAX_REPOSITORIES: usize = 5_000;
/// Maximum bytes of an image in a Pod: what is longer is the name of no image.
const MAX_BYTES: usize = 512;
/// Maximum number of namespaces that are listed for a repository.
const MAX_NAMESPACES: usize = 20;

/// The repositories whose images Pods need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunningImages {
    /// The Pods of each repository.
    pub repositories: BTreeMap<Image, PodsOfImage>,
    /// Number of Pods.
    pub pods: usize,
    /// Number of images that are no names of images; kubelets cannot pull them either.
    pub unreadable: usize,
    /// Number of images that were left out, as there are too many repositories.
    pub left_out: usize,
}

/// The Pods that need the images of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodsOfImage {
    /// Their number.
    pub pods: usize,
    /// Their first namespaces.
    pub namespaces: BTreeSet<String>,
}

/// The images as they were read for one revision.
#[derive(Clone, Debug)]
pub struct ObservedImages {
    /// The revision of the merged Secret for which they were read.
    pub revision: String,
    /// Time at which they were read.
    pub at: Timestamp,
    /// The images, or the error of reading them.
    pub images: Result<Arc<RunningImages>, String>,
}

impl RunningImages {
    /// The images of a list, one a line.
    pub fn of_list(list: &str) -> Self {
        let mut images = Self::default();
        for line in list.lines().map(str::trim).filter(|line| !line.is_empty()) {
            images.add(None, std::iter::once(line));
        }
        images
    }

    /// Adds a Pod with its images.
    pub fn add<'a>(&mut self, namespace: Option<&str>, images: impl Iterator<Item = &'a str>) {
        self.pods = self.pods.saturating_add(1);
        let mut of_pod = BTreeSet::new();
        for text in images {
            let image = Some(text).filter(|text| text.len() <= MAX_BYTES).and_then(Image::parse);
            match image {
                Some(image) => drop(of_pod.insert(image)),
                None => self.unreadable = self.unreadable.saturating_add(1),
            }
        }
        for image in of_pod {
            if self.repositories.len() >= MAX_REPOSITORIES && !self.repositories.contains_key(&image) {
                self.left_out = self.left_out.saturating_add(1);
                continue;
            }
            let of_image = self.repositories.entry(image).or_default();
            of_image.pods = of_image.pods.saturating_add(1);
            if let Some(namespace) = namespace.filter(|_| of_image.namespaces.len() < MAX_NAMESPACES) {
                of_image.namespaces.insert(namespace.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_are_counted_by_repository() {
        let mut images = RunningImages::default();
        images.add(Some("b"), ["q.io/team/app:1", "q.io/team/app@sha256:00", "nginx"].into_iter());
        images.add(Some("a"), ["q.io/team/app:2", "not an image"].into_iter());
        let shown: Vec<String> = images
            .repositories
            .iter()
            .map(|(image, of)| format!("{} {} {:?}", image.name(), of.pods, of.namespaces))
            .collect();
        assert_eq!(shown, [r#"docker.io/library/nginx 1 {"b"}"#, r#"q.io/team/app 2 {"a", "b"}"#]);
        assert_eq!((images.pods, images.unreadable, images.left_out), (2, 1, 0));
    }

    #[test]
    fn what_an_admin_can_grow_is_bounded() {
        let mut images = RunningImages::default();
        for number in 0..MAX_REPOSITORIES + 7 {
            images.add(Some(&format!("n{number}")), [format!("q.io/{number}").as_str(), "q.io/0"].into_iter());
        }
        images.add(None, std::iter::once("x".repeat(MAX_BYTES + 1).as_str()));
        let first = images.repositories.values().next().unwrap();
        assert_eq!((images.repositories.len(), first.namespaces.len()), (MAX_REPOSITORIES, MAX_NAMESPACES));
        assert_eq!((images.left_out, images.unreadable), (7, 1));
    }

    #[test]
    fn a_list_has_an_image_on_each_line() {
        let images = RunningImages::of_list(" q.io/a:1\n\nq.io/a:2\n?\n");
        let pods: Vec<usize> = images.repositories.values().map(|of| of.pods).collect();
        assert_eq!((pods, images.pods, images.unreadable), (vec![2], 3, 1));
    }
}
