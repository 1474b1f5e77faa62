//! Settings that are accepted, settings that are refused, and the database that they name.

use std::collections::BTreeMap;
use std::str::FromStr as _;

use daemon::settings::{File, Given, Table, load};
use rstest::rstest;
use secrecy::ExposeSecret as _;

use super::*;

type Variables<'a> = BTreeMap<&'a str, &'a str>;

const ROWS: &[Row] = &rows(Defaults { path: "test.db", name: "test" });

daemon::settings! {
    /// Settings of a component.
    struct Settings {
        /// The database
        pub database: DatabaseSettings = Row::section().of(Kind::Section(ROWS)),
    }
}

const TABLE: Table = Table { further: &[URL_VARIABLE], ..Table::of(<Settings as daemon::settings::Section>::ROWS) };

/// Reads the settings as a component does.
fn loaded(file: &str, variables: &Variables<'_>) -> Result<DatabaseSettings, Vec<String>> {
    let file = Some(File { name: String::new(), text: file.to_owned() });
    load::<Settings>(&TABLE, variables, &Given { file, ..Given::default() }).then(|Settings { mut database }| {
        let mut faults = database.read_files();
        faults.extend(database.faults());
        faults.extend(database.take_url(variables));
        if faults.is_empty() { Ok(database) } else { Err(faults) }
    })
}

#[test]
fn nothing_has_to_be_given() {
    let settings = loaded("", &Variables::new()).unwrap();
    let Source::Sqlite { path } = settings.source(&Variables::new()).unwrap() else { panic!("not SQLite") };
    assert_eq!((path.as_path(), settings.file(), settings.name.as_str()), (Path::new("test.db"), Some(&*path), "test"));
    let pool = PoolSettings::from(settings.pool);
    assert_eq!((pool.max_connections, pool.acquire_timeout), (50, Duration::from_secs(3)));
    assert_eq!((pool.max_lifetime, pool.idle_timeout), (Duration::from_mins(5), Duration::from_mins(1)));
}

#[test]
fn a_url_takes_postgresql() {
    let variables = Variables::from([(URL_VARIABLE, "postgresql://user:hunter2@host/name?sslmode=verify-full")]);
    let settings = loaded("", &variables).unwrap();
    let source = settings.source(&variables).unwrap();
    assert!(matches!(source, Source::PostgresUrl(_)) && settings.file().is_none());
    assert!(!format!("{source:?} {settings:?}").contains("hunter2"));
}

#[rstest]
#[case("database: {password: a, password_file: b}", "database.password: give either it or database.password_file")]
#[case("database: {pool: {max_connections: 0}}", "database.pool.max_connections: must be a whole number of 1 or more")]
#[case("database: {dialect: postgres, host: db.example.com}", "database.ssl.mode: whether the connection is encrypted")]
#[case("database: {dialect: mysql}", "database.dialect: ")]
#[case("database: {hots: a}", "database.hots: unknown key; did you mean database.host?")]
fn faults_name_the_key(#[case] file: &str, #[case] fault: &str) {
    let faults = loaded(file, &Variables::new()).unwrap_err();
    assert!(faults.len() == 1 && faults[0].starts_with(fault), "{faults:?}");
}

#[test]
fn a_url_of_another_database_is_refused() {
    let variables = Variables::from([(URL_VARIABLE, "mysql://user:hunter2@host/name")]);
    let faults = loaded("", &variables).unwrap_err();
    assert_eq!(faults, ["DATABASE_URL: must be postgresql://USER:PASSWORD@HOST:PORT/NAME"]);
}

#[rstest]
#[case("postgresql://u@h/n?sslmode=verify-full", "postgresql://u@h/n?sslmode=verify-full&sslrootcert=%2Fa+b%2Fca.crt")]
#[case("postgresql:///n", "postgresql:///n?sslrootcert=%2Fa+b%2Fca.crt")]
#[case(
    "postgresql://u@h/n?sslmode=verify-ca&sslrootcert=/own",
    "postgresql://u@h/n?sslmode=verify-ca&sslrootcert=/own"
)]
fn a_url_trusts_the_authorities_of_the_settings(#[case] url: &str, #[case] expected: &str) {
    let variables = Variables::from([("DATABASE_URL", url)]);
    let settings = loaded("database: {ssl: {root_cert_file: /a b/ca.crt}}", &variables).unwrap();
    let Source::PostgresUrl(url) = settings.source(&variables).unwrap() else { panic!("not a URL") };
    assert_eq!(url.expose_secret(), expected);
    let options = sqlx::postgres::PgConnectOptions::from_str(url.expose_secret()).unwrap();
    let trusted = format!("{options:?}");
    assert!(trusted.contains("/a b/ca.crt") || trusted.contains("/own"), "{trusted}");
}

/// HyperFleet's chart gives the database by five files of a mounted Secret.
#[test]
fn the_database_is_read_from_files() {
    let folder = tempfile::tempdir().unwrap();
    let held = [
        ("HOST", " 127.0.0.1\n"),
        ("PORT", "6543\n"),
        ("NAME", "fleet"),
        ("USERNAME", "api\n"),
        ("PASSWORD", "hunter2\n"),
    ];
    let files = held.map(|(name, text)| {
        let path = folder.path().join(name);
        daemon::file::replace(&path, text.as_bytes()).unwrap();
        (format!("DATABASE_{name}_FILE"), path.to_string_lossy().into_owned())
    });
    let mut variables: Variables<'_> = files.iter().map(|(name, path)| (name.as_str(), path.as_str())).collect();
    let file = "database: {dialect: postgres, host: elsewhere, port: 1, name: other, username: other}";
    let settings = loaded(file, &variables).unwrap();
    let source = settings.source(&variables).unwrap();
    let Source::Postgres { host, port, name, username, password, .. } = &source else { panic!("{source:?}") };
    assert_eq!((host.as_str(), *port, name.as_str()), ("127.0.0.1", 6543, "fleet"));
    assert_eq!((username.as_deref(), password.as_ref().unwrap().expose_secret()), (Some("api"), "hunter2"));
    assert!(!format!("{source:?} {settings:?}").contains("hunter2"));

    daemon::file::replace(&folder.path().join("HOST"), b"db.example.com").unwrap();
    daemon::file::replace(&folder.path().join("PORT"), b"high").unwrap();
    daemon::file::replace(&folder.path().join("NAME"), b" \n").unwrap();
    variables.insert("DATABASE_USERNAME_FILE", "/absent");
    let faults = loaded(file, &variables).unwrap_err().join("\n");
    for fault in
        ["/PORT holds no such value", "/NAME is empty", "database.username_file: ", "/absent", "database.ssl.mode: "]
    {
        assert!(faults.contains(fault), "{fault}: {faults}");
    }
}

#[rstest]
#[case("postgresql://user:hunter2@db.example.com/name", false)]
#[case("postgresql://user:hunter2@db.example.com:5432/name?sslmode=prefer", false)]
#[case("postgres://db.example.com/name?sslmode=allow&x=y", false)]
#[case("postgresql://user:p@127.0.0.1@db.example.com/name", false)]
#[case("postgresql://user:hunter2@db.example.com/name?sslmode=require", true)]
#[case("postgresql://db.example.com/name?x=y&sslmode=disable", true)]
#[case("postgresql://user@127.0.0.1:5432/name", true)]
#[case("postgresql://user@[::1]:5432/name", true)]
#[case("postgresql://user@localhost/name", true)]
#[case("postgresql:///name?host=/run/postgresql", true)]
fn a_url_says_how_its_connection_is_encrypted(#[case] url: &str, #[case] accepted: bool) {
    let loaded = loaded("", &Variables::from([("DATABASE_URL", url)]));
    assert_eq!(loaded.is_ok(), accepted, "{loaded:?}");
    assert!(!format!("{loaded:?}").contains("hunter2"));
}
