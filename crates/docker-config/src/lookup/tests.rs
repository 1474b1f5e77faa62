//! Images and the keys that either reader finds for them.

use rstest::rstest;

use super::Image;

#[rstest]
#[case("quay.io/org/app:1.2", "quay.io/org/app")]
#[case("quay.io/org/app@sha256:00", "quay.io/org/app")]
#[case("quay.io/org/app:1.2@sha256:00", "quay.io/org/app")]
#[case("localhost:5000/app", "localhost:5000/app")]
#[case("nginx", "docker.io/library/nginx")]
#[case("nginx:1", "docker.io/library/nginx")]
#[case("team/app:1", "docker.io/team/app")]
#[case("index.docker.io/team/app", "docker.io/team/app")]
#[case("[::1]:5000/app:2", "[::1]:5000/app")]
fn names_are_read_in_full(#[case] reference: &str, #[case] name: &str) {
    assert_eq!(Image::parse(reference).unwrap().name(), name);
}

#[rstest]
#[case("")]
#[case("quay.io/")]
#[case("a b")]
#[case(":1")]
fn what_is_no_name_is_none(#[case] reference: &str) {
    assert_eq!(Image::parse(reference), None);
}

/// The rows of the reference: where the readers differ.
#[rstest]
#[case::both_take_the_host("quay.io/a/b", &["quay.io"], &["quay.io"], Some("quay.io"))]
#[case::most_specific_first("quay.io/a/b", &["quay.io", "quay.io/a", "quay.io/a/b"], &["quay.io/a/b", "quay.io/a", "quay.io"], Some("quay.io/a/b"))]
#[case::kubelet_takes_first_characters("quay.io/mycompany/x", &["quay.io", "quay.io/my"], &["quay.io/my", "quay.io"], Some("quay.io"))]
#[case::globs_are_for_kubelet("x.azurecr.io/a", &["*.azurecr.io"], &["*.azurecr.io"], None)]
#[case::globs_come_after_names("x.azurecr.io/a", &["*.azurecr.io", "x.azurecr.io"], &["x.azurecr.io", "*.azurecr.io"], Some("x.azurecr.io"))]
#[case::a_glob_is_one_label("a.b.azurecr.io/a", &["*.azurecr.io"], &[], None)]
#[case::ports_must_be_the_same("quay.io/a", &["quay.io:443"], &[], None)]
#[case::schemes_and_versions_are_stripped("quay.io/a", &["https://quay.io/v2/"], &["https://quay.io/v2/"], Some("https://quay.io/v2/"))]
#[case::what_is_written_plainly_is_first("quay.io/a", &["https://quay.io", "quay.io"], &["quay.io", "https://quay.io"], Some("quay.io"))]
#[case::docker_hub("nginx", &["https://index.docker.io/v1/"], &["https://index.docker.io/v1/"], Some("https://index.docker.io/v1/"))]
#[case::the_default_registry_is_kubelets_last_resort("nginx", &["https://index.docker.io/v1/", "docker.io/library"], &["docker.io/library"], Some("docker.io/library"))]
#[case::even_after_a_glob("nginx", &["*.io", "index.docker.io"], &["*.io"], Some("index.docker.io"))]
#[case::a_host_without_a_dot_is_of_the_default_registry("localhost/app", &["index.docker.io"], &["index.docker.io"], None)]
#[case::another_registry("quay.io/a", &["registry.redhat.io"], &[], None)]
#[case::keys_that_are_none("quay.io/a", &["quay.io?x", ""], &[], None)]
fn readers_find(#[case] image: &str, #[case] keys: &[&str], #[case] kubelet: &[&str], #[case] other: Option<&str>) {
    let image = Image::parse(image).unwrap();
    assert_eq!(image.kubelet_keys(keys.iter().copied()), kubelet);
    assert_eq!(image.containers_image_key(keys.iter().copied()), other);
}

/// A node asks containers/image only where kubelet has no key.
#[rstest]
#[case::kubelets_in_its_order("quay.io/a/b", &["quay.io", "quay.io/a"], &["quay.io/a", "quay.io"])]
#[case::kubelet_has_one_that_the_other_lacks("x.azurecr.io/a", &["*.azurecr.io"], &["*.azurecr.io"])]
#[case::a_url_with_a_path_is_its_host_for_the_other("quay.io/b/x", &["https://quay.io/a"], &["https://quay.io/a"])]
#[case::but_not_if_kubelet_has_one("quay.io/a/x", &["https://quay.io/a", "quay.io"], &["https://quay.io/a", "quay.io"])]
#[case::none("quay.io/a", &["quay.io:443"], &[])]
fn a_node_tries(#[case] image: &str, #[case] keys: &[&str], #[case] expected: &[&str]) {
    assert_eq!(Image::parse(image).unwrap().node_keys(keys.iter().copied()), expected);
}

#[rstest]
#[case("*", "abc", true)]
#[case("a*c", "abbc", true)]
#[case("a*b*c", "a-bb-c", true)]
#[case("a*b*c", "acb", false)]
#[case("*a", "", false)]
#[case("", "", true)]
fn globs_match(#[case] glob: &str, #[case] text: &str, #[case] expected: bool) {
    assert_eq!(super::glob_matches(glob.as_bytes(), text.as_bytes()), expected);
}
