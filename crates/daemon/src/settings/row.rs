//! Settings as rows of a table.

/// A setting, or with [`Kind::Section`] several.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Its key in the file, such as `database.pool.max_connections`.
    pub path: &'static str,
    /// Its flag, without the dashes.
    pub flag: Option<&'static str>,
    /// Its variable.
    pub variable: Variable,
    /// Other keys that are accepted.
    pub other_keys: &'static [&'static str],
    /// Other variables that are accepted.
    pub other_variables: &'static [&'static str],
    /// Its type.
    pub kind: Kind,
    /// Stands for the value in a synopsis; empty for that of the type.
    pub placeholder: &'static str,
    /// Value where none is given; empty for no value.
    pub default: &'static str,
    /// Text that says what holds without a value, where there is no default.
    pub unset: &'static str,
    /// Reading fails where it is not given.
    pub is_required: bool,
    /// Least value, written as values are; empty for none.
    pub least: &'static str,
    /// Greatest value, written as values are; empty for none.
    pub most: &'static str,
    /// The sentence of `--help` and of the reference page, with units.
    pub help: &'static str,
}

/// Variable of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The one that [`Table::variable`] derives from the path.
    OfPath,
    /// This one.
    Named(&'static str),
    /// None.
    None,
}

/// Type of a setting.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Any text.
    Text,
    /// A credential: never a flag, never printed.
    Secret,
    /// Path of a file or folder.
    Path,
    /// Whole number up to this one.
    Number(u64),
    /// `true` or `false`.
    Switch,
    /// Duration such as `500ms`, `5s`, `1m30s` or `168h`; see [`super::duration`].
    Duration,
    /// One of several texts; each with its other spellings behind it.
    Choice(&'static [&'static [&'static str]]),
    /// List or mapping, which only the file can give.
    FileOnly,
    /// Several settings.
    Section(&'static [Row]),
}

/// Settings of a program.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Variable of the setting at a path, where its row names none; mostly [`variable`] with a prefix.
    pub variable: fn(&str) -> String,
    /// The settings.
    pub rows: &'static [Row],
    /// Keys that other versions of the program know and this one does not, each with what to do instead.
    pub retired: &'static [(&'static str, &'static str)],
    /// Beginnings of the variables whose misspellings are refused; names without such a prefix may belong to others.
    pub families: &'static [&'static str],
    /// Further variables that the program reads itself.
    pub further: &'static [&'static str],
}

/// Keys that another program knows and that have no effect here, each with the reason.
pub type Inert = [(&'static str, &'static str)];

/// Derives a variable from a path: the prefix and the path in capitals, `_` for every dot.
pub fn variable(prefix: &str, path: &str) -> String {
    format!("{prefix}_{}", path.replace('.', "_").to_uppercase())
}

// === impl Row ===

impl Row {
    /// A setting with this key and nothing else yet.
    pub const fn at(path: &'static str) -> Self {
        Self {
            path,
            flag: None,
            variable: Variable::OfPath,
            other_keys: &[],
            other_variables: &[],
            kind: Kind::Text,
            placeholder: "",
            default: "",
            unset: "",
            is_required: false,
            least: "",
            most: "",
            help: "",
        }
    }

    /// Several settings that a structure declares.
    pub const fn section() -> Self {
        Self::at("")
    }

    /// With this flag.
    #[must_use]
    pub const fn flag(self, flag: &'static str) -> Self {
        Self { flag: Some(flag), ..self }
    }

    /// With this variable instead of the derived one.
    #[must_use]
    pub const fn variable(self, name: &'static str) -> Self {
        Self { variable: Variable::Named(name), ..self }
    }

    /// Without a variable.
    #[must_use]
    pub const fn no_variable(self) -> Self {
        Self { variable: Variable::None, ..self }
    }

    /// Accepts these keys too.
    #[must_use]
    pub const fn or_keys(self, keys: &'static [&'static str]) -> Self {
        Self { other_keys: keys, ..self }
    }

    /// Accepts these variables too.
    #[must_use]
    pub const fn or_variables(self, variables: &'static [&'static str]) -> Self {
        Self { other_variables: variables, ..self }
    }

    /// Holds this value where none is given.
    #[must_use]
    pub const fn default(self, default: &'static str) -> Self {
        Self { default, ..self }
    }

    /// Says what holds without a value.
    #[must_use]
    pub const fn unset(self, unset: &'static str) -> Self {
        Self { unset, ..self }
    }

    /// Must be given.
    #[must_use]
    pub const fn required(self) -> Self {
        Self { is_required: true, ..self }.unset("required")
    }

    /// Is at least this.
    #[must_use]
    pub const fn least(self, least: &'static str) -> Self {
        Self { least, ..self }
    }

    /// Is from `least` to `most`, both included.
    #[must_use]
    pub const fn within(self, least: &'static str, most: &'static str) -> Self {
        Self { least, most, ..self }
    }

    /// Shows this for the value in a synopsis.
    #[must_use]
    pub const fn placeholder(self, placeholder: &'static str) -> Self {
        Self { placeholder, ..self }
    }

    /// Is of this type; a section stays what it is.
    #[must_use]
    pub const fn of(self, kind: Kind) -> Self {
        match self.kind {
            Kind::Section(_) => self,
            _ => Self { kind, ..self },
        }
    }

    /// Is described by this sentence.
    #[must_use]
    pub const fn help(self, help: &'static str) -> Self {
        Self { help: help.trim_ascii(), ..self }
    }

    /// Text that stands for its value, all choices included.
    pub fn synopsis(&self) -> String {
        match self.kind {
            Kind::Choice(choices) if self.placeholder.is_empty() => {
                choices.iter().filter_map(|names| names.first().copied()).collect::<Vec<_>>().join("|")
            }
            _ => self.value_name().to_owned(),
        }
    }

    /// Word that stands for its value.
    pub fn value_name(&self) -> &'static str {
        match self.kind {
            _ if !self.placeholder.is_empty() => self.placeholder,
            Kind::Text | Kind::Secret => "TEXT",
            Kind::Path => "PATH",
            Kind::Number(_) => "NUMBER",
            Kind::Switch => "true|false",
            Kind::Duration => "DURATION",
            Kind::Choice(_) => "VALUE",
            Kind::FileOnly | Kind::Section(_) => "",
        }
    }

    /// Bounds as a text, such as `1s to 2m`; empty where there are none.
    pub fn bounds(&self) -> String {
        match (self.least, self.most) {
            ("", "") => String::new(),
            (least, "") => format!("{least} or more"),
            ("", most) => format!("at most {most}"),
            (least, most) => format!("{least} to {most}"),
        }
    }

    /// Bounds as the end of a phrase, such as ` from 1s to 2m`; empty where there are none.
    pub(crate) fn of_bounds(&self) -> String {
        match (self.least, self.most) {
            ("", "") => String::new(),
            ("", most) => format!(" of at most {most}"),
            (_, "") => format!(" of {}", self.bounds()),
            _ => format!(" from {}", self.bounds()),
        }
    }
}

// === impl Kind ===

impl Kind {
    /// Returns true for what flags and variables can give.
    pub fn is_scalar(self) -> bool {
        !matches!(self, Self::FileOnly | Self::Section(_))
    }
}

// === impl Table ===

impl Table {
    /// A table of these rows, whose variables are derived from paths without a prefix.
    pub const fn of(rows: &'static [Row]) -> Self {
        Self { variable: |path| path.replace('.', "_").to_uppercase(), rows, retired: &[], families: &[], further: &[] }
    }

    /// All settings, those of sections included, in the order of their declaration.
    pub fn all(&self) -> Vec<&'static Row> {
        flattened(self.rows)
    }

    /// All settings that flags and variables can give.
    pub fn scalars(&self) -> Vec<&'static Row> {
        self.all().into_iter().filter(|row| row.kind.is_scalar()).collect()
    }

    /// The setting's variable.
    pub fn variable_of(&self, row: &Row) -> Option<String> {
        match row.variable {
            Variable::Named(name) => Some(name.to_owned()),
            Variable::OfPath if row.kind.is_scalar() => Some((self.variable)(row.path)),
            Variable::OfPath | Variable::None => None,
        }
    }

    /// The setting's variables: its own, then the others that are accepted.
    pub fn variables_of(&self, row: &Row) -> Vec<String> {
        let others = row.other_variables.iter().map(|name| (*name).to_owned());
        self.variable_of(row).into_iter().chain(others).collect()
    }

    /// All variables that the program reads.
    pub fn variables(&self) -> Vec<String> {
        let further = self.further.iter().map(|name| (*name).to_owned());
        self.scalars().into_iter().flat_map(|row| self.variables_of(row)).chain(further).collect()
    }

    /// Names of a setting for a message: its variable and its flag or key, such as `X_PORT or --port`.
    pub fn ways(&self, row: &Row) -> String {
        let flag = row.flag.map(|flag| format!("--{flag}"));
        let key = Some(row.path.to_owned()).filter(|path| !path.is_empty());
        let ways: Vec<String> = self.variable_of(row).into_iter().chain(flag.or(key)).collect();
        ways.join(" or ")
    }
}

fn flattened(rows: &'static [Row]) -> Vec<&'static Row> {
    let mut all = Vec::new();
    for row in rows {
        match row.kind {
            Kind::Section(below) => all.extend(flattened(below)),
            _ => all.push(row),
        }
    }
    all
}
