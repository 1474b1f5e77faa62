//! The query parameters of a request.

use std::collections::BTreeMap;

use crate::problem::{Code, FieldError, Problem};
use crate::search::{Fields, Order, Search, SearchError};

/// The query parameters by name, with all values of each.
#[derive(Clone, Debug, Default)]
pub(super) struct Parameters(BTreeMap<String, Vec<String>>);

/// One page of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Paging {
    /// The page number, counted from 1.
    pub(super) page: i64,
    /// Maximum number of items on a page.
    pub(super) size: i64,
}

/// Default, minimum and maximum of `page`.
const PAGE: (i64, i64, i64) = (1, 1, 100_000);
/// Default, minimum and maximum of `size`.
const SIZE: (i64, i64, i64) = (20, 1, 100);

impl Parameters {
    pub(super) fn parse(query: Option<&str>) -> Self {
        let mut parameters: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            parameters.entry(name.into_owned()).or_default().push(value.into_owned());
        }
        Self(parameters)
    }

    /// The first value of a parameter without the blanks around it; an empty one counts as absent.
    pub(super) fn first(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.first().map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// All values of a parameter.
    pub(super) fn all(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }

    /// The requested page. The names of older versions (`pageSize`, `orderBy`) have no effect, as in HyperFleet's API.
    pub(super) fn paging(&self) -> Result<Paging, Problem> {
        let mut faults = Vec::new();
        let mut number = |field: &'static str, (default, min, max): (i64, i64, i64)| {
            let Some(text) = self.first(field) else { return default };
            let fault = match text.parse::<i64>() {
                Err(_no_number) => FieldError::new(field, "format", "must be a valid integer").with_value(text),
                Ok(number) if number < min => {
                    FieldError::new(field, "min", format!("{field} must be at least {min}")).with_value(number)
                }
                Ok(number) if number > max => {
                    FieldError::new(field, "max", format!("{field} must be at most {max}")).with_value(number)
                }
                Ok(number) => return number,
            };
            faults.push(fault);
            default
        };
        let (page, size) = (number("page", PAGE), number("size", SIZE));
        if faults.is_empty() { Ok(Paging { page, size }) } else { Err(invalid(faults)) }
    }

    /// The requested reference, as its type and target id.
    pub(super) fn reference(&self) -> Result<Option<(String, String)>, Problem> {
        let message = "ref_type and ref_target_id must be provided together";
        match (self.first("ref_type"), self.first("ref_target_id")) {
            (None, None) => Ok(None),
            (Some(ref_type), Some(id)) if !ref_type.contains('\0') && !id.contains('\0') => {
                Ok(Some((ref_type.to_owned(), id.to_owned())))
            }
            (Some(_), Some(_)) => {
                Err(invalid(vec![FieldError::new("reftargetid", "format", "must not contain a NUL character")]))
            }
            (None, Some(_)) => Err(invalid(vec![FieldError::new("reftype", "required", message).with_value("")])),
            (Some(_), None) => Err(invalid(vec![FieldError::new("reftargetid", "required", message).with_value("")])),
        }
    }

    pub(super) fn search(&self) -> Result<Search, Problem> {
        Search::parse(self.first("search").unwrap_or_default()).map_err(|error| refused(&error))
    }

    pub(super) fn order(&self) -> Result<Order, Problem> {
        Order::parse(self.all("order")).map_err(|error| refused(&error))
    }

    pub(super) fn fields(&self) -> Result<Option<Fields>, Problem> {
        let unknown = |error: SearchError| {
            Problem::validation(error.to_string()).at(vec![FieldError::new("fields", "enum", error.to_string())])
        };
        Fields::parse(self.all("fields")).map_err(unknown)
    }

    /// A parameter that is `true` or `false`.
    pub(super) fn switch(&self, name: &'static str) -> Result<bool, Problem> {
        match self.first(name) {
            None | Some("false" | "0") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(_) => Err(invalid(vec![FieldError::new(name, "enum", "must be true or false")])),
        }
    }

    /// True if `include=pullSecret` is given.
    pub(super) fn with_pull_secret(&self) -> Result<bool, Problem> {
        let included = self.all("include").iter().flat_map(|value| value.split(','));
        let mut with = false;
        for name in included.filter(|name| !name.is_empty()) {
            if name != "pullSecret" {
                return Err(invalid(vec![FieldError::new("include", "enum", "must be pullSecret")]));
            }
            with = true;
        }
        Ok(with)
    }
}

// === impl Paging ===

impl Paging {
    pub(super) fn offset(self) -> i64 {
        (self.page - 1) * self.size
    }
}

pub(super) fn invalid(faults: Vec<FieldError>) -> Problem {
    Problem::validation("Invalid query parameters").at(faults)
}

fn refused(error: &SearchError) -> Problem {
    Problem::new(Code::BadRequest, error.to_string())
}
